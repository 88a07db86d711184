// Networks by name.

#include "networks.h"

#include <fmt/format.h>

#include "lamina/error.h"
#include "lamina/onnx.h"

namespace lamina::bench {
namespace {

Network of_zoo(const nets::Info& info) {
  return {.name = std::string(info.name),
          .source = std::string(info.source),
          .protocol = info.protocol,
          .image = info.image,
          .smallest_image = info.smallest_image};
}

Network of_file(const std::filesystem::path& file, const NetSettings& settings) {
  if (settings.image != 0 || settings.width_divisor != 1 || settings.softmax)
    throw UsageError(fmt::format(
        "--image, --width_divisor and --softmax are of the zoo's networks; {} is taken as it is", file.string()));
  return {.name = network_name(file), .source = "from " + file.string(), .file = file};
}

}  // namespace

std::string network_name(const std::filesystem::path& onnx) { return onnx.stem().string(); }

Network network(const std::string& name, const NetSettings& settings) {
  for (const std::filesystem::path& file : settings.onnx)
    if (network_name(file) == name) return of_file(file, settings);
  return of_zoo(nets::info(name));
}

std::vector<Network> networks(const NetSettings& settings) {
  std::vector<Network> all;
  for (const std::filesystem::path& file : settings.onnx) all.push_back(of_file(file, settings));
  if (all.empty())
    for (const nets::Info& info : nets::list()) all.push_back(of_zoo(info));
  return all;
}

Graph graph_of(const Config& c, const NetSettings& settings) {
  const Network its = network(c.network, settings);
  if (its.file) return read_onnx(*its.file, {.batch = c.batch, .training = true}).graph;
  return nets::build(c.network, {.batch = c.batch,
                                 .image = settings.image,
                                 .width_divisor = settings.width_divisor,
                                 .softmax = settings.softmax.value_or(its.protocol.softmax)});
}

TensorFile stored_weights(const Config& c, const NetSettings& settings) {
  const Network its = network(c.network, settings);
  return its.file ? read_onnx(*its.file, {.batch = c.batch, .training = true}).weights : TensorFile{};
}

}  // namespace lamina::bench
