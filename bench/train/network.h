#pragma once
// Any network of the zoo on a folder of images: its sizes follow from the data.

#include <cstdint>
#include <filesystem>
#include <string>

#include "lamina/workloads.h"

namespace lamina::bench {

struct NetworkOptions {
  std::filesystem::path data{};  ///< folder of CIFAR-10's binary files, or of MNIST's
  int batch = 32, width_divisor = 1;
  std::string optimiser = "adam";  ///< of named_optimiser
  double learning_rate = 0;        ///< 0: the optimiser's own
  std::uint64_t seed = 0;
};

/// Throws UsageError for an unknown network, or without a folder: the zoo's networks have no synthetic sets.
void check_network(const std::string& name, const std::filesystem::path& data);

/// The network for the images and classes of the folder, with softmax cross entropy on its logits. The last batch of an
/// epoch is dropped unless it is full. Images are not augmented. Throws UsageError (as check_network, images that the
/// network does not take), FileError (no such files, or damaged ones), ShapeError (images too small for the network).
PreparedWorkload prepare_network(const std::string& name, const NetworkOptions&);

}  // namespace lamina::bench
