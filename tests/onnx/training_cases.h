#pragma once
// ONNX's cases of optimisers and losses, by this library's updates and its loss.

#include <string>
#include <vector>

#include "lamina/weights.h"
#include "lib/onnx/messages.h"

namespace lamina::test {

/// Whether its one node is an optimiser or a loss: such a node is no part of a graph that is read.
bool is_training_case(const onnx::GraphMessage&);

/// What the node gives for its inputs, of each output. Throws Unsupported for what this library does not compute.
std::vector<std::vector<double>> run_training_case(const onnx::GraphMessage&, const std::string& file,
                                                   const std::vector<HostTensor>& inputs);

}  // namespace lamina::test
