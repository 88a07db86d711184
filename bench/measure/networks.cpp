// Networks by name.

#include "networks.h"

#include <fmt/format.h>

#include <string_view>

#include "lamina/error.h"

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

/// What the library says of its options, by the flags that give them.
std::string by_flags(std::string said) {
  const auto replace_end = [&](std::string_view option, std::string_view flag) {
    if (said.ends_with(option)) said.replace(said.size() - option.size(), option.size(), flag);
  };
  replace_end("in OnnxOptions::extents", "by --onnx_extents=NAME=EXTENT");
  replace_end("in OnnxOptions::output", "by --onnx_output=NAME");
  return said;
}

OnnxModel read_with(const OnnxOptions& options, const std::filesystem::path& onnx) {
  try {
    return read_onnx(onnx, options);
  } catch (const UsageError& error) {
    throw UsageError(by_flags(error.what()));
  }
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

OnnxModel read_network_file(const std::filesystem::path& onnx, int batch, const OnnxSettings& settings) {
  OnnxModel model =
      read_with({.batch = batch, .extents = settings.extents, .output = settings.output, .training = true}, onnx);
  for (const OnnxValue& input : model.inputs)
    if (!input.extents.empty() && input.extents.front() != batch)
      throw UsageError(
          fmt::format("--onnx_extents gives {} a batch of {}, and it is read with a batch of {}: leave that name out; "
                      "--batch alone gives a batch",
                      onnx.string(), input.extents.front(), batch));
  return model;
}

Graph graph_of(const Config& c, const NetSettings& settings) {
  const Network its = network(c.network, settings);
  if (its.file) return read_network_file(*its.file, c.batch, settings.onnx_settings).graph;
  return nets::build(c.network, {.batch = c.batch,
                                 .image = settings.image,
                                 .width_divisor = settings.width_divisor,
                                 .softmax = settings.softmax.value_or(its.protocol.softmax)});
}

TensorFile stored_weights(const Config& c, const NetSettings& settings) {
  const Network its = network(c.network, settings);
  return its.file ? read_network_file(*its.file, c.batch, settings.onnx_settings).weights : TensorFile{};
}

}  // namespace lamina::bench
