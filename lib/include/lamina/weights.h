#pragma once
// Reading and writing safetensors files, and moving their tensors into and out of plans.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"
#include "lamina/shape.h"

namespace lamina {

/// A tensor of a file, on the host: its extents as the file has them, outermost first, and its numbers.
struct HostTensor {
  DType dtype = DType::f32;           ///< as stored: f64, f32, f16, bf16
  std::vector<std::int64_t> extents;  ///< {} for a scalar
  std::vector<double> values;         ///< every f64, f32, f16 and bf16 is exactly a double
};

/// Names in order of the alphabet.
using TensorFile = std::map<std::string, HostTensor>;

/// Throws FileError, naming file and tensor: unreadable, truncated, trailing bytes, a header that is too long, not JSON
/// or not of the form, unknown element types, offsets that overlap, leave gaps, or do not match the extents. Never
/// allocates more than the file is long times the widening to double. Integer tensors (I64 and the like, as PyTorch's
/// num_batches_tracked) are checked and then left out.
LAMINA_API TensorFile read_safetensors(const std::filesystem::path&);

/// Writes to a neighbour first and renames, so that a full disk leaves the old file. Throws FileError.
LAMINA_API void write_safetensors(const std::filesystem::path&, const TensorFile&);

/// Loads every parameter and running statistic of the plan. Strict: a missing, unknown or misshapen tensor is a
/// FileError that names it (a few at once, and how many more). `num_batches_tracked` is ignored by rule, as is a plan's
/// dropout step. A vector {k} fits 1 x k x 1 x 1; a matrix {k, j} fits k x c x h x w with c h w = j.
LAMINA_API void load_weights(Plan&, const TensorFile&, const std::string& file_name = "weights");

/// Every parameter and running statistic of the plan, in PyTorch's extents (vectors and matrices without trailing
/// ones), of the plan's element type.
LAMINA_API TensorFile save_weights(const Plan&);

}  // namespace lamina
