#pragma once
// A transposed convolution by the convolution of its y to its x, the mirrored one: forward is that one's data gradient,
// the data gradient is its forward pass, and the gradient of the weights is its own, with values and gradients
// exchanged.

#include <cstddef>
#include <functional>

#include "lamina/backend.h"

namespace lamina {

/// The mirrored unit, in training and without bias, and the pass of it that computes a pass.
Spec mirrored(const Spec&);
Pass mirrored(Pass);

/// What a backend computes besides.
struct TransposedParts {
  std::function<void(const Args&)> add_bias;                      ///< y += bias
  std::function<void(const Args&)> bias_gradient;                 ///< db, or db += by Spec::adds_dw
  std::size_t bias_gradient_bytes;                                ///< workspace of bias_gradient
  std::function<void(const Tensor& to, const Tensor& from)> add;  ///< to += from
};

/// The unit, from what `lower` makes of the mirrored one.
Lowered lower_transposed(const Spec&, const Choice&, const TransposedParts&,
                         const std::function<Lowered(const Spec&, const Choice&)>& lower);

}  // namespace lamina
