#pragma once
// What a pass left in the tensors of a device: numbers, bits, and how far they are from the exact ones.

#include <cstdint>
#include <vector>

#include "lamina/backend.h"
#include "reference.h"

namespace lamina::bench {

std::vector<double> values_of(Device&, const Tensor&);

/// What a pass wrote: y, the gradients of parameters, or those of inputs.
std::vector<Tensor> results_of(Pass, const Args&);

/// A hash of the bits of all of them; of a null tensor there are none.
std::uint64_t bits_of(Device&, const std::vector<Tensor>&);

/// What the pass of a convolution or fully connected op left against the sums in f64: of y, dx or the gradient of the
/// weight.
Reference reference_of(Device&, const Op&, Pass, const Args&);
ErrorFound error_of(Device&, Pass, const Args&, const Reference&);

}  // namespace lamina::bench
