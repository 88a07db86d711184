// The files by which the peers of a race compute the same function as a network of ours.

#include "network_files.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <variant>

#include "lamina/error.h"
#include "lamina/lamina.h"
#include "lamina/onnx.h"

namespace lamina::bench {
namespace {

constexpr double most_certain = 0.9;  // the greatest probability of an image, averaged over the images

HostTensor tensor_of(const Shape& shape, std::vector<double> values) {
  return {DType::f32, {shape.n, shape.c, shape.h, shape.w}, std::move(values)};
}

/// What the plan makes of x.
HostTensor computed(Plan& plan, const HostTensor& x) {
  Device& device = plan.backend().device();
  upload(device, plan.input(), std::span<const double>(x.values));
  plan.forward();
  const Tensor y = plan.output();
  std::vector<double> values(static_cast<std::size_t>(y.shape.count()));
  download(device, std::span<double>(values), y);
  for (const double value : values)
    if (!std::isfinite(value)) throw UsageError(plan.graph().name() + ": what it computes is not finite");
  return tensor_of(y.shape, std::move(values));
}

template <class T>
bool has(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return std::holds_alternative<T>(node.op); });
}

void check_probabilities(const Graph& graph, const HostTensor& y) {
  const auto images = y.extents.front(), each = static_cast<std::int64_t>(y.values.size()) / images;
  double sum = 0;
  for (auto first = y.values.begin(); first != y.values.end(); first += each)
    sum += *std::max_element(first, first + each);
  if (sum > most_certain * static_cast<double>(images))
    throw UsageError(graph.name() + ": its softmax gives hardly more than 0 and 1, which says nothing of its logits");
}

}  // namespace

void write_network_files(const Graph& graph, Backend& backend, const std::filesystem::path& files, bool onnx) {
  TensorFile check;
  {
    Plan plan(graph, backend, {.mode = Mode::inference});
    const TensorFile weights = save_weights(plan);
    write_safetensors(files / "weights.safetensors", weights);
    if (onnx) write_onnx(files / "network.onnx", graph, weights);
    const Shape shape = plan.input().shape;
    std::vector<double> x(static_cast<std::size_t>(shape.count()));
    fill_normal(x, hash("check"));
    for (double& value : x) value = static_cast<float>(value);
    check["x"] = tensor_of(shape, std::move(x));
    check["y"] = computed(plan, check["x"]);
    if (has<Softmax>(graph)) check_probabilities(graph, check["y"]);
  }
  if (!has<Dropout>(graph)) {
    Plan plan(graph, backend, {});
    check["y_training"] = computed(plan, check["x"]);
  }
  write_safetensors(files / "check.safetensors", check);
}

}  // namespace lamina::bench
