#pragma once
// Sum of several tensors, with an optional function, and its gradients.

#include "kernels/pointwise.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int most_addends = 64;  // most addends of one launch

/// Tensors of one shape. One launch adds all of them, or writes a gradient to each. Unused entries are null.
template <class T>
struct Operands {
  View<T> views[most_addends];
  bool adds[most_addends] = {};  ///< whether gradients are added to old contents
  int count = 0;
};

/// y may alias any addend.
template <class T>
void add_forward(Stream, const Operands<const T>& x, View<T> y, const PointwiseFunction&);

/// Writes the gradient to every dx, in order: dy or, if y is given, dy times the function's slope, computed from y. Any
/// dx may alias dy.
template <class T>
void add_backward(Stream, View<const T> dy, View<const T> y, const PointwiseFunction&, const Operands<T>& dx);

}  // namespace lamina::LAMINA_CUDA_SPACE
