#pragma once
// Extents that a file leaves open.

#include <vector>

#include "lamina/onnx.h"
#include "messages.h"

namespace lamina::onnx {

/// Of the inputs that are neither initialized nor among the constants: each name once, in the file's order.
std::vector<OnnxOpenExtent> open_extents(const GraphMessage&, const TensorFile& constants);

}  // namespace lamina::onnx
