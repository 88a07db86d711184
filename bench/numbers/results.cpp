// What a pass left in the tensors of a device.

#include "results.h"

#include <algorithm>
#include <span>

namespace lamina::bench {
namespace {

constexpr std::size_t block_bytes = 4 << 20;

/// Single elements of a tensor, by their places in n, c, h, w.
std::vector<double> values_of(Device& device, const Tensor& tensor, const std::vector<std::int64_t>& elements) {
  const Shape& shape = tensor.shape;
  std::vector<double> values(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::int64_t n = elements[i] / shape.image(), in_image = elements[i] % shape.image();
    const std::int64_t c = in_image / shape.plane(), pixel = in_image % shape.plane();
    const std::int64_t at =
        tensor.layout == Layout::nchw ? n * tensor.pitch + in_image : (n * shape.plane() + pixel) * tensor.pitch + c;
    Tensor one{tensor.as<char>() + at * static_cast<std::int64_t>(size_of(tensor.dtype)), {}, tensor.dtype};
    one.pitch = 1;
    download(device, std::span<double>(&values[i], 1), one);
  }
  return values;
}

}  // namespace

std::vector<double> values_of(Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

std::vector<Tensor> results_of(Pass pass, const Args& args) {
  if (pass == Pass::forward) return {args.y};
  return pass == Pass::backward_params ? args.dw : args.dx;
}

std::uint64_t bits_of(Device& device, const std::vector<Tensor>& tensors) {
  std::vector<std::uint64_t> block(block_bytes / sizeof(std::uint64_t));
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const Tensor& tensor : tensors) {
    if (!tensor) continue;
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    for (std::size_t at = 0; at < bytes; at += block_bytes) {
      const std::size_t here = std::min(block_bytes, bytes - at);
      block[(here - 1) / sizeof(std::uint64_t)] = 0;  // the last word may be filled in part
      device.download(block.data(), tensor.as<char>() + at, here);
      for (std::size_t i = 0; i * sizeof(std::uint64_t) < here; ++i) {
        hash = (hash ^ block[i]) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 32;
      }
    }
  }
  return hash;
}

Reference reference_of(Device& device, const Op& op, Pass pass, const Args& args) {
  Operands operands;
  if (pass != Pass::backward_data) operands.x = values_of(device, args.x[0]);
  if (pass != Pass::backward_params) operands.w = values_of(device, args.w[0]);
  if (pass == Pass::forward && args.w.size() > 1) operands.bias = values_of(device, args.w[1]);
  if (pass != Pass::forward) operands.dy = values_of(device, args.dy);
  return make_reference(op, args.x[0].shape, pass, operands);
}

ErrorFound error_of(Device& device, Pass pass, const Args& args, const Reference& reference) {
  return compare(reference, values_of(device, results_of(pass, args).front(), reference.elements));
}

}  // namespace lamina::bench
