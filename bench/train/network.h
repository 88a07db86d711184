#pragma once
// Any network on a folder of images: a network of the zoo, whose sizes follow from the data, or of an ONNX file, as it
// is. The options that count are the data, the share, the seed, and the options of networks other than the workloads.

#include <filesystem>
#include <string>

#include "lamina/workloads.h"
#include "train.h"

namespace lamina::bench {

/// The network for the images and classes of the folder, with softmax cross entropy on its logits. The last batch of an
/// epoch is dropped unless it is full. Images are not augmented. Throws UsageError (an unknown network, images that the
/// network does not take), FileError (no such files, or damaged ones), ShapeError (images too small for the network).
PreparedWorkload prepare_network(const std::string& name, const TrainOptions&);

/// The network of an ONNX file, which starts from the file's weights. A softmax at its end becomes part of the loss;
/// the rest is as in prepare_network. Without a folder it is trained on synthetic glyphs of its images' size: 50,000
/// for training and 10,000 for validation at share 1, fewer if training images would take more than 256 MiB.
struct PreparedFile {
  PreparedWorkload training;
  TensorFile weights;  ///< weights for the training's plan
};

/// Throws UsageError (a network other than one of images to one row of logits; images that it does not take),
/// FileError, and what read_onnx throws.
PreparedFile prepare_file(const std::filesystem::path& onnx, const TrainOptions&);

/// Throws what prepare_file throws of the network; images are neither read nor drawn.
void check_file(const std::filesystem::path& onnx, const TrainOptions&);

}  // namespace lamina::bench
