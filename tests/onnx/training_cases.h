#pragma once
// ONNX's cases of training: of optimisers and losses, by this library's updates and its loss, and of nodes that do in
// training what they do not in inference.

#include <filesystem>
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

/// Whether its one node is a BatchNormalization by the batch.
bool is_norm_by_batch(const onnx::GraphMessage&, const std::string& file);

/// What the node gives for its inputs in the forward pass of a step of training: y and the running statistics.
std::vector<std::vector<double>> run_norm_by_batch(const onnx::ModelMessage&, const std::filesystem::path& file,
                                                   const std::vector<HostTensor>& inputs);

/// Whether its one node is a Dropout that drops, given the numbers of its inputs but the first.
bool is_by_chance(const onnx::GraphMessage&, const TensorFile& constants);

}  // namespace lamina::test
