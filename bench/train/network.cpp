// Any network of the zoo on a folder of images.

#include "network.h"

#include <fmt/format.h>

#include <utility>

#include "lamina/error.h"
#include "lamina/nets.h"

namespace lamina::bench {
namespace {

struct Images {
  ImageSet training, validation;
  std::string name;
};

/// CIFAR-10 where the folder has its first file, else MNIST.
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

}  // namespace

void check_network(const std::string& name, const std::filesystem::path& data) {
  nets::info(name);
  if (data.empty())
    throw UsageError(
        fmt::format("{} has no synthetic set: give --data, a folder of CIFAR-10's or MNIST's files", name));
}

PreparedWorkload prepare_network(const std::string& name, const NetworkOptions& options) {
  const nets::Info& net = nets::info(name);
  check_network(name, options.data);
  Images images = read_images(options.data);
  check_images(net, images);

  Graph graph = nets::build(name, {.batch = options.batch,
                                   .image = images.training.image.h,
                                   .classes = images.training.classes,
                                   .width_divisor = options.width_divisor,
                                   .softmax = false});
  const Value logits = graph.value(graph.nodes().back().name);
  softmax_cross_entropy(logits, graph.input({options.batch, 1, 1, 1}, "labels"), "loss");

  auto training = image_source(std::move(images.training)), validation = image_source(std::move(images.validation));
  const NamedOptimiser optimiser = named_optimiser(options.optimiser);
  TrainerOptions train;
  train.optimiser = optimiser.optimiser;
  train.learning_rate = constant_rate(options.learning_rate > 0 ? options.learning_rate : optimiser.learning_rate);
  train.drop_last = true;  // statistics of a batch norm are of full batches
  train.seed = options.seed;
  train.validation = validation.get();
  return {std::move(graph),
          std::move(training),
          std::move(validation),
          std::move(train),
          std::move(images.name),
          false,
          {}};
}

}  // namespace lamina::bench
