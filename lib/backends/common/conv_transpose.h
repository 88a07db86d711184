#pragma once
// A transposed convolution by the mirrored one: the convolution from its y to its x, with the same weights. Forward is
// the data gradient of that convolution, and the data gradient is its forward pass. The gradient of the weights is the
// same, with values and gradients exchanged.

#include <cstddef>
#include <functional>

#include "lamina/backend.h"

namespace lamina {

/// The mirrored unit, in training and without bias, and its pass that computes the given one.
Spec mirrored(const Spec&);
Pass mirrored(Pass);

/// The functions of a backend for what the mirrored unit does not compute.
struct TransposedParts {
  std::function<void(const Args&)> add_bias;                      ///< y += bias
  std::function<void(const Args&)> bias_gradient;                 ///< db, or db += by Spec::adds_dw
  std::size_t bias_gradient_bytes;                                ///< workspace of bias_gradient
  std::function<void(const Tensor& to, const Tensor& from)> add;  ///< to += from
};

/// The unit. `lower` lowers the mirrored one.
Lowered lower_transposed(const Spec&, const Choice&, const TransposedParts&,
                         const std::function<Lowered(const Spec&, const Choice&)>& lower);

}  // namespace lamina
