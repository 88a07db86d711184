// The files by which the peers of a race compute the same function as a network of ours.

#include "network_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lamina/error.h"
#include "lamina/lamina.h"
#include "lamina/onnx.h"

namespace lamina::bench {
namespace {

constexpr double most_certain = 0.9;  // the greatest probability of an image, averaged over the images

HostTensor tensor_of(const Shape& shape, std::vector<double> values) {
  return {DType::f32, {shape.n, shape.c, shape.h, shape.w}, std::move(values)};
}

/// The names of the inputs in a file: "x", "x1", ...
std::string input_name(std::size_t i) { return i == 0 ? "x" : fmt::format("x{}", i); }

std::vector<std::string> inputs_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<Input>(node.op)) names.push_back(node.name);
  return names;
}

/// What the plan makes of the inputs in the file.
HostTensor computed(Plan& plan, const TensorFile& check) {
  Device& device = plan.backend().device();
  const std::vector<std::string> inputs = inputs_of(plan.graph());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    upload(device, plan.input(inputs[i]), std::span<const double>(check.at(input_name(i)).values));
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

void write_network_files(const Graph& graph, const TensorFile& its_weights, Backend& backend,
                         const std::filesystem::path& files, bool onnx) {
  TensorFile check;
  const auto with_weights = [&](Mode mode) {
    Plan plan(graph, backend, {.mode = mode});
    if (!its_weights.empty()) load_weights(plan, its_weights);
    return plan;
  };
  {
    Plan plan = with_weights(Mode::inference);
    const TensorFile weights = save_weights(plan);
    write_safetensors(files / "weights.safetensors", weights);
    if (onnx) write_onnx(files / "network.onnx", graph, weights);
    const std::vector<std::string> inputs = inputs_of(graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Shape shape = graph.node(inputs[i]).shape;
      std::vector<double> x(static_cast<std::size_t>(shape.count()));
      fill_normal(x, hash("check" + input_name(i).substr(1)));
      for (double& value : x) value = static_cast<float>(value);
      check[input_name(i)] = tensor_of(shape, std::move(x));
    }
    check["y"] = computed(plan, check);
    if (has<Softmax>(graph)) check_probabilities(graph, check["y"]);
  }
  if (!has<Dropout>(graph)) {
    Plan plan = with_weights(Mode::training);
    check["y_training"] = computed(plan, check);
  }
  write_safetensors(files / "check.safetensors", check);
}

}  // namespace lamina::bench
