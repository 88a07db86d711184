// Files that Lamina writes for the peers of a race, so that peers compute the same function, or train on the same
// batches. Also the epochs of Lamina's training.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lamina/lamina.h"
#include "server.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

PreparedWorkload prepared(const ServedTrainingOptions& options) {
  PreparedWorkload ready = prepare(workload(options.workload), {.share = options.share});
  ready.options.drop_last = true;
  ready.options.validation = nullptr;
  return ready;
}

class ServedTraining final : public Served {
 public:
  ServedTraining(const ServedTrainingOptions& options, Backend& backend)
      : ready_(prepared(options)), trainer_(ready_.graph, backend, *ready_.training, ready_.options) {}

  void warm_up() override { pass(); }

  json facts() const override {
    const int batch = ready_.graph.node("labels").shape.n;
    return {{"data", ready_.data}, {"batch", batch}, {"samples", ready_.training->count() / batch * batch}};
  }

  json pass() override {
    const double cpu = cpu_seconds();
    const EpochResult epoch = trainer_.train(static_cast<int>(trainer_.epochs().size()) + 1).back();
    return {{"epoch", epoch.seconds},
            {"epoch_cpu", cpu_seconds() - cpu},
            {"loss", epoch.training.loss},
            {"accuracy", epoch.training.accuracy}};
  }

 private:
  PreparedWorkload ready_;
  Trainer trainer_;
};

/// The file of an epoch: all samples and labels, in their order.
TensorFile samples_of(Loader& loader, const Shape& sample, std::uint64_t epoch) {
  HostTensor x, labels;
  loader.start(epoch);
  while (const Batch* batch = loader.next()) {
    x.values.insert(x.values.end(), batch->x.begin(), batch->x.end());
    labels.values.insert(labels.values.end(), batch->labels.begin(), batch->labels.end());
  }
  const auto count = static_cast<std::int64_t>(labels.values.size());
  x.extents = {count, sample.c, sample.h, sample.w};
  labels.extents = {count};
  TensorFile file;
  file["x"] = std::move(x);
  file["labels"] = std::move(labels);
  return file;
}

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

/// The output of the plan for the inputs in `check`. Throws UsageError if a value is not finite.
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
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return std::holds_alternative<T>(node.op); });
}

/// Throws UsageError if the greatest probability of an image is above 0.9 on average: such a y hides errors in logits.
void check_probabilities(const Graph& graph, const HostTensor& y) {
  const auto images = static_cast<std::size_t>(y.extents.front()), each = y.values.size() / images;
  double sum = 0;
  for (std::size_t i = 0; i < images; ++i) sum += std::ranges::max(std::span(y.values).subspan(i * each, each));
  if (sum > 0.9 * static_cast<double>(images))
    throw UsageError(graph.name() + ": its softmax gives hardly more than 0 and 1, which hides its logits");
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

void write_batches(const ServedTrainingOptions& options, Backend& backend) {
  const PreparedWorkload ready = prepared(options);
  Trainer trainer(ready.graph, backend, *ready.training, ready.options);
  write_safetensors(options.files / "initial.safetensors", save_weights(trainer.plan()));
  Loader loader(
      *ready.training,
      {.batch = ready.graph.node("labels").shape.n, .drop_last = true, .seed = ready.options.seed, .threads = 0});
  for (int epoch = 0; epoch < options.epochs; ++epoch)
    write_safetensors(options.files / ("epoch-" + std::to_string(epoch) + ".safetensors"),
                      samples_of(loader, ready.training->shape(), static_cast<std::uint64_t>(epoch)));
}

std::unique_ptr<Served> serve_training(const ServedTrainingOptions& options, Backend& backend) {
  return std::make_unique<ServedTraining>(options, backend);
}

}  // namespace lamina::bench
