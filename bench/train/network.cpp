// Trains a network of the zoo or of an ONNX file on images: of a folder or, for an ONNX file, synthetic images.

#include "train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/machine/ranks.h"
#include "bench/measure/session.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

struct Images {
  ImageSet training, validation;
  std::string name;
  std::optional<Optimum> optimum{};  ///< optimum of synthetic images
};

/// Reads CIFAR-10 if the folder has its first file, else MNIST. Throws FileError.
Images read_images(const std::filesystem::path& folder) {
  for (const char* name : {"data_batch_1.bin", "data_batch_1.bin.gz"})
    if (std::filesystem::exists(folder / name))
      return {read_cifar10(folder, Part::train), read_cifar10(folder, Part::test), "CIFAR-10"};
  for (const char* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"})
    if (std::filesystem::exists(folder / name))
      return {read_mnist(folder, Part::train), read_mnist(folder, Part::test), "MNIST"};
  throw FileError(
      fmt::format("{}: has neither data_batch_1.bin (CIFAR-10, binary version) nor train-images-idx3-ubyte (MNIST), "
                  "nor either with "
                  ".gz",
                  folder.string()));
}

void check_images(const nets::Info& net, const Images& images) {
  const Shape& image = images.training.image;
  if (images.validation.image != image)
    throw FileError(fmt::format("images of {} are {} for training and {} for validation", images.name, to_string(image),
                                to_string(images.validation.image)));
  if (image.c != net.channels)
    throw UsageError(fmt::format("{} takes images of {} channels, and those of {} have {}", net.name, net.channels,
                                 images.name, image.c));
  if (image.h != image.w)
    throw UsageError(
        fmt::format("{} takes square images, and those of {} are {} x {}", net.name, images.name, image.h, image.w));
}

/// The number of images in one rank's part of a batch.
int batch_of(const TrainOptions& options) { return part_of(options.batch > 0 ? options.batch : 32, options.net.ranks); }

/// A training of the graph on the images. The last value of the graph must be its logits.
PreparedWorkload with_loss(Graph graph, Images images, const TrainOptions& options) {
  const Value logits = graph.value(graph.nodes().back().name);
  softmax_cross_entropy(logits, graph.input({batch_of(options), 1, 1, 1}, "labels"), "loss");

  auto training = image_source(std::move(images.training)), validation = image_source(std::move(images.validation));
  const NamedOptimiser optimiser = named_optimiser(options.optimiser.empty() ? "adam" : options.optimiser);
  const double rate = options.learning_rate > 0 ? options.learning_rate : optimiser.learning_rate;
  TrainerOptions train{.optimiser = optimiser.optimiser,
                       .learning_rate = constant_rate(rate),
                       .seed = options.seed,
                       .validation = validation.get(),
                       .drop_last = true};  // so that statistics of a batch norm come from full batches
  return {std::move(graph),       std::move(training),        std::move(validation), std::move(train),
          std::move(images.name), images.optimum.has_value(), images.optimum};
}

/// A network of a file. It maps images to logits.
struct FileNetwork {
  Graph graph;  ///< graph without a softmax at its end
  TensorFile weights;
  Shape image, logits;  ///< shapes for one image
};

/// Throws UsageError unless the network makes a row of two or more logits. `logits`: shape of its output for one image.
void check_logits(const std::string& network, const Shape& logits) {
  if (logits.plane() != 1 || logits.c < 2)
    throw UsageError(fmt::format("{} makes {} of each image; a training takes one row of two or more logits", network,
                                 to_string(logits)));
}

Glyphs glyphs_of(const Shape& image, int logits) { return Glyphs({.image = image, .classes = std::min(logits, 10)}); }

FileNetwork read_network(const std::filesystem::path& onnx, const TrainOptions& options) {
  OnnxModel model = read_network_file(onnx, batch_of(options), options.net.onnx_settings);
  if (model.inputs.size() != 1)
    throw UsageError(
        fmt::format("{} has {} inputs; a training takes one of images", onnx.string(), model.inputs.size()));
  Graph graph = std::move(model.graph);
  if (std::holds_alternative<Softmax>(graph.nodes().back().op)) graph = graph.first(graph.nodes().size() - 1);
  Shape image = graph.node(model.inputs.front().node).shape, logits = graph.nodes().back().shape;
  image.n = logits.n = 1;
  check_logits(onnx.string(), logits);
  if (options.data.empty() && image.c != 1 && image.c != 3)
    throw UsageError(
        fmt::format("{} takes images of {} channels; synthetic ones have 1 or 3: give --data", onnx.string(), image.c));
  if (options.data.empty()) glyphs_of(image, logits.c);  // throws if the image is too small for glyphs
  return {std::move(graph), std::move(model.weights), image, logits};
}

/// Synthetic images for the network of a file.
Images glyphs(const Shape& image, int logits, const TrainOptions& options) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 28;
  const Glyphs all = glyphs_of(image, logits);
  const std::int64_t whole = std::clamp<std::int64_t>(most_bytes / image.count(), 1, 50000);
  const std::int64_t count =
      std::max<std::int64_t>(batch_of(options), std::llround(options.share * static_cast<double>(whole)));
  Images images{.training = all.draw(count, options.seed * 2 + 1),
                .validation = all.draw(std::max<std::int64_t>(1, count / 5), options.seed * 2 + 2),
                .name = "synthetic glyphs"};
  images.optimum = all.best_on(images.validation);
  return images;
}

}  // namespace

PreparedWorkload prepare_network(const std::string& name, const TrainOptions& options) {
  const nets::Info& net = nets::info(name);
  Images images = read_images(options.data);
  check_images(net, images);

  Graph graph = nets::build(name, {.batch = batch_of(options),
                                   .image = images.training.image.h,
                                   .classes = images.training.classes,
                                   .width_divisor = options.net.width_divisor,
                                   .softmax = false});
  Shape logits = graph.nodes().back().shape;
  logits.n = 1;
  check_logits(name, logits);
  return with_loss(std::move(graph), std::move(images), options);
}

PreparedFile prepare_file(const std::filesystem::path& onnx, const TrainOptions& options) {
  auto [graph, weights, image, logits] = read_network(onnx, options);
  Images images = options.data.empty() ? glyphs(image, logits.c, options) : read_images(options.data);
  if (images.training.image != image || images.validation.image != image)
    throw UsageError(fmt::format("{} takes images of {}, and those of {} are {}", onnx.string(), to_string(image),
                                 images.name, to_string(images.training.image)));
  if (images.training.classes > logits.c)
    throw UsageError(fmt::format("{} has {} logits, and {} has {} classes", onnx.string(), logits.c, images.name,
                                 images.training.classes));
  return {with_loss(std::move(graph), std::move(images), options), std::move(weights)};
}

void check_file(const std::filesystem::path& onnx, const TrainOptions& options) { read_network(onnx, options); }

}  // namespace lamina::bench
