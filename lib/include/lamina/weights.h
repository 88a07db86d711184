#pragma once
// Tensors on the host, copied into and out of plans.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"
#include "lamina/shape.h"

namespace lamina {

/// A tensor on the host, as in a file: its extents as stored, outermost first, and its numbers.
struct HostTensor {
  DType dtype = DType::f32;           ///< type as stored: f64, f32, f16, bf16
  std::vector<std::int64_t> extents;  ///< {} for a scalar
  std::vector<double> values;         ///< numbers; every f64, f32, f16 and bf16 is exact as a double
};

/// Tensors by name, in alphabetical order.
using TensorFile = std::map<std::string, HostTensor>;

/// Loads every parameter and state of the plan except a dropout's step. Strict: a missing, unknown or misshapen tensor
/// is a FileError. The message names the first few, and how many more there are. A parameter that several nodes share
/// is loaded by any of its names; if the file has several of them, their numbers must be equal. A scale whose shift is
/// fixed may have its node's name alone, as PyTorch's layer scales do; the shift then stays as it is.
/// `num_batches_tracked` is ignored. {k} and {k, 1, 1} fit 1 x k x 1 x 1; a matrix {k, j} fits k x c x h x w with
/// c h w = j. Rounds to the type that the tensor has in the plan; a finite number out of its range is a FileError.
/// After an error the plan is unchanged.
LAMINA_API void load_weights(Plan&, const TensorFile&, const std::string& file_name = "weights");

/// Every parameter and state of the plan except a dropout's step, once and by its first name, in the type that it has
/// in the plan. The extents are PyTorch's: filters {k, c, h, w}; weights of fully connected ops {k, c h w}; embeddings
/// and weights of recurrent ops are matrices; everything else is a vector. Waits for the device.
LAMINA_API TensorFile save_weights(const Plan&);

/// Reorders the columns of a fully connected weight: {k, h w c}, which flattens an image in the order h, w, c, as in
/// Keras, becomes {k, c h w}, in the order c, h, w of this library and PyTorch. (Keras stores the transpose, {h w c,
/// k}.) Only c, h and w of `image` are used. Throws UsageError unless the weight is a matrix of c h w columns.
LAMINA_API HostTensor hwc_to_chw(const HostTensor& weight, const Shape& image);

}  // namespace lamina
