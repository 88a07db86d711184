#pragma once
// y = function(a, b), where either operand may repeat along axes, and the gradients.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A function, in the order of lamina::BinaryFunction (lamina/ops/elementwise.h), and the axes of the images of y.
struct BinaryWork {
  enum Name { add, subtract, multiply, divide, maximum, minimum, functions };
  /// The distances from an element to the next one in a, b and y. 0: the element repeats.
  struct Axis {
    int extent = 1;
    int steps[3] = {};
  };
  Name name;
  int axes = 1;  ///< number of axes
  Axis axis[3];  ///< outermost first; extents of 1 are left out, and axes are joined where the same operands repeat
};

/// y may alias an operand of its shape. With equal shapes the elements may be in any order that all tensors share.
template <class T>
void binary_forward(Stream, const BinaryWork&, View<const T> a, View<const T> b, View<T> y);

/// The gradients d[0] of a and d[1] of b. Null data: not wanted. If a and b are one tensor, the second gradient is
/// written after the first, and needs `adds[1]`.
template <class T>
struct BinaryGradients {
  View<T> d[2];
  bool adds[2] = {};  ///< whether to add (+=)
};

/// Whether the gradient of operand `of` reads operand `which`.
LAMINA_HOST_DEVICE constexpr bool binary_gradient_reads(BinaryWork::Name f, int of, int which) {
  if (f == BinaryWork::add || f == BinaryWork::subtract) return false;
  if (f == BinaryWork::multiply) return of != which;
  return f != BinaryWork::divide || which == 1 || of == 1;
}

/// The gradient of an operand that repeats is a sum over repetitions. The gradient of another operand may alias dy.
template <class T>
void binary_backward(Stream, const BinaryWork&, View<const T> a, View<const T> b, View<const T> dy,
                     const BinaryGradients<T>& gradients);

}  // namespace lamina::LAMINA_CUDA_SPACE
