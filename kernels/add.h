#pragma once
// y = sum of some tensors, and ReLU of it where asked; and the gradients of that.

#include "common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int most_addends = 64;  // of one launch

/// Tensors of one shape that one launch adds up, or writes one gradient to. A few of many: the rest are null.
template <class T>
struct Operands {
  View<T> views[most_addends];
  bool adds[most_addends] = {};  ///< gradients only: += where old contents are kept
  int count = 0;
};

/// y may lie on any of the addends.
template <class T>
void add_forward(Stream, const Operands<const T>& x, View<T> y, bool relu);

/// Every dx, in order, becomes dy or, where there is a y, dy where y > 0. Any dx may lie on dy.
template <class T>
void add_backward(Stream, View<const T> dy, View<const T> y, const Operands<T>& dx);

}  // namespace lamina::LAMINA_CUDA_SPACE
