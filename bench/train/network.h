#pragma once
// Any network on a folder of images: of the zoo, whose sizes follow from the data, or of an ONNX file, as it is.

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/options/settings.h"
#include "lamina/weights.h"
#include "lamina/workloads.h"

namespace lamina::bench {

struct NetworkOptions {
  std::filesystem::path data{};  ///< folder of CIFAR-10's binary files, or of MNIST's
  int batch = 32;
  int width_divisor = 1;           ///< of the zoo
  double share = 1;                ///< of synthetic glyphs
  std::string optimiser = "adam";  ///< of named_optimiser
  double learning_rate = 0;        ///< 0: the optimiser's own
  std::uint64_t seed = 0;
  OnnxSettings onnx{};  ///< of a file
};

/// Throws UsageError for an unknown network, or without a folder: the zoo's networks have no synthetic sets.
void check_network(const std::string& name, const std::filesystem::path& data);

/// The network for the images and classes of the folder, with softmax cross entropy on its logits. The last batch of an
/// epoch is dropped unless it is full. Images are not augmented. Throws UsageError (as check_network, images that the
/// network does not take), FileError (no such files, or damaged ones), ShapeError (images too small for the network).
PreparedWorkload prepare_network(const std::string& name, const NetworkOptions&);

/// The network of an ONNX file, which starts from the file's weights. A softmax at its end becomes part of the loss;
/// the rest is as in prepare_network. Without a folder it is trained on synthetic glyphs of its images' size: 50,000 of
/// training and 10,000 of validation at share 1, fewer where those of training take more than 256 MiB.
struct PreparedFile {
  PreparedWorkload training;
  TensorFile weights;  ///< for the training's plan
};

/// Throws UsageError (a network other than one of images to one row of logits; images that it does not take),
/// FileError, and what read_onnx throws.
PreparedFile prepare_file(const std::filesystem::path& onnx, const NetworkOptions&);

/// Throws what prepare_file throws of the network; images are neither read nor drawn.
void check_file(const std::filesystem::path& onnx, const NetworkOptions&);

}  // namespace lamina::bench
