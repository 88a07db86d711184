#pragma once
// y = function(a, b), where either operand may repeat along axes, and the gradients.

#include "kernels/common/stream.h"

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

/// y may alias an operand of its shape. With equal shapes the elements of all tensors may be in any one order.
template <class T>
void binary_forward(Stream, const BinaryWork&, View<const T> a, View<const T> b, View<T> y);

/// The gradients of a and b. Null data: not wanted. If a and b are one tensor, the second gradient is written after the
/// first, and needs `adds_b`.
template <class T>
struct BinaryGradients {
  View<T> da, db;
  bool adds_a = false, adds_b = false;  ///< whether to add (+=)
};

/// The gradient of an operand that repeats is a sum over what repeats it. The gradient of any other may alias dy.
template <class T>
void binary_backward(Stream, const BinaryWork&, View<const T> a, View<const T> b, View<const T> dy,
                     const BinaryGradients<T>& gradients);

}  // namespace lamina::LAMINA_CUDA_SPACE
