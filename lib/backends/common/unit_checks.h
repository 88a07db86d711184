#pragma once
// Which units the backends of our own code take: what they refuse alike, and what they fuse alike.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// Whether a backend takes values of f16 and bf16.
enum class Halves : std::uint8_t { refused, taken };

/// Throws Unsupported unless all tensors of the unit are of f32, or all of f64; or, where halves are taken, its values
/// are of one half type and all other tensors of f32, as value_dtypes() and parameter_dtype() say. Further values may
/// be of f32. Also for an input whose type does not hold all its labels or ids exactly. `backend` starts the messages.
void check_types(const std::string& backend, const Spec&, Halves);

/// Throw Unsupported for one rank's part of a batch, for backends that draw whole masks and take whole statistics only.
void check_whole_batch(const std::string& backend, const Dropout&);
void check_whole_batch(const std::string& backend, const BatchNorm&);

// Each throws Unsupported, and `backend` starts the message: unless products are strict, every tensor of the unit is
// nchw, all are of one layout.
void check_strict(const std::string& backend, const Choice&);
void check_nchw(const std::string& backend, const Spec&);
void check_one_layout(const std::string& backend, const Spec&);

/// Whether `next` may follow an op and the first `count` ops of its tail: an Add and a ReLU after a batch norm, a ReLU
/// after products and sums, and in inference what conv_unit.h has.
bool default_fusion(const Op&, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode);

/// Throws Unsupported for an op of the tail that may not follow those before it.
void check_tail(const std::string& backend, const Spec&, decltype(default_fusion)* joins);

}  // namespace lamina
