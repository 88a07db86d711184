#pragma once
// A transposed convolution is computed by the mirrored convolution, which goes from y to x with the same weights.
// Forward runs the mirrored data gradient, and the data gradient runs the mirrored forward pass. The gradient of the
// weights is the same pass in both, with x and dy exchanged.

#include <cstddef>
#include <functional>

#include "lamina/backend.h"

namespace lamina {

/// The mirrored unit, in training and without bias, and the pass of it that computes the given pass.
Spec mirrored(const Spec&);
Pass mirrored(Pass);

/// Functions of a backend for the work that the mirrored unit does not do.
struct TransposedParts {
  std::function<void(const Args&)> add_bias;                      ///< y += bias
  std::function<void(const Args&)> bias_gradient;                 ///< db = sums of dy, or db += if Spec::adds_dw
  std::size_t bias_gradient_bytes;                                ///< workspace of bias_gradient
  std::function<void(const Tensor& to, const Tensor& from)> add;  ///< to += from
};

/// Lowers a transposed convolution. `lower` lowers the mirrored unit.
Lowered lower_transposed(const Spec&, const Choice&, const TransposedParts&,
                         const std::function<Lowered(const Spec&, const Choice&)>& lower);

}  // namespace lamina
