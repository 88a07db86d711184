#pragma once
// The files by which the peers of a race compute the same function as a network of ours, and are checked.

#include <filesystem>

#include "lamina/backend.h"
#include "lamina/graph.h"
#include "lamina/weights.h"

namespace lamina::bench {

/// Writes to the folder `files`, which exists:
///   weights.safetensors   the network's parameters and running statistics, those given or as its plans draw them
///   check.safetensors     "x", a batch of numbers, of further inputs "x1", ..., and what an f32 plan makes of them in
///                         inference, "y"; of a network without dropout also what it makes in training, "y_training"
///   network.onnx          graph and weights, where `onnx` asks for it
/// Throws what write_onnx throws, and UsageError where y says nothing of what was computed: where it is not finite, or
/// has hardly more than one probability other than 0 in each image.
void write_network_files(const Graph&, const TensorFile& weights, Backend&, const std::filesystem::path& files,
                         bool onnx);

}  // namespace lamina::bench
