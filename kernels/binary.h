#pragma once
// y = a b, where b has the shape of a or is one factor for each plane, and the gradients.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y may alias a, and b if it has the shape of a.
template <class T>
void multiply_forward(Stream, View<const T> a, View<const T> b, View<T> y);

/// The gradients of a and b. Null data: not wanted. If a and b are one tensor, the second gradient is added to the
/// first.
template <class T>
struct Factors {
  View<T> da, db;
  bool adds_a = false, adds_b = false;  ///< whether to add (+=)
};

/// da = dy b and db = dy a, or for one factor per plane the sum of dy a over the plane. da may alias dy, and so may db
/// if it has the shape of dy.
template <class T>
void multiply_backward(Stream, View<const T> a, View<const T> b, View<const T> dy, const Factors<T>& gradients);

}  // namespace lamina::LAMINA_CUDA_SPACE
