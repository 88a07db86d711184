// ONNX's cases of training: what ai.onnx.preview.training and SoftmaxCrossEntropyLoss say, as an update of the backend
// eigen and as a graph of one loss; a BatchNormalization by the batch, as the forward pass of a plan in training.

#include "training_cases.h"

#include <array>
#include <limits>
#include <optional>
#include <span>

#include "lamina/backend.h"
#include "lamina/error.h"
#include "lamina/graph.h"
#include "lamina/plan.h"
#include "lib/onnx/attributes.h"
#include "lib/onnx/importer.h"
#include "lib/plan/run/update.h"

namespace lamina::test {
namespace {

using onnx::Attributes;

/// The rule of a node at its rate R and its count T of updates before it.
UpdateFactors rule_of_node(const Attributes& node, double rate, std::uint64_t before) {
  const double norm = node.number("norm_coefficient", 0);
  const std::string_view type = node.node().op_type;
  if (type == "Adagrad") {
    const Schedule schedule = inverse_time(rate, node.number("decay_factor", 0));
    return planner::update_factors(Adagrad{node.number("epsilon", 0), norm}, schedule(before), before + 1);
  }
  UpdateFactors rule;
  if (type == "Adam") {
    if (node.number("norm_coefficient_post", 0) != 0)
      throw Unsupported("it shrinks the new parameter by norm_coefficient_post; AdamW shrinks the old one");
    // T = 0 is without a correction, which is that of very many updates.
    const std::uint64_t number = before > 0 ? before : std::numeric_limits<std::uint64_t>::max();
    rule = planner::update_factors(
        KerasAdam{node.number("alpha", 0.9), node.number("beta", 0.999), node.number("epsilon", 0)}, rate, number);
  } else {
    const double gain = before > 0 ? node.number("beta", 1) : 1;
    const bool nesterov = node.text("mode", "standard") == "nesterov";
    if (nesterov && gain != 1)
      throw Unsupported("Nesterov's rule with a beta: it would need a gain of the velocity alone");
    rule = planner::update_factors(Sgd{node.number("alpha", 0), nesterov}, rate, before + 1);
    rule.gain = gain;
  }
  rule.weight_decay = norm;
  return rule;
}

/// Inputs: R, T, all X, all G, then each state of all X. Outputs: all X, then each state.
std::vector<std::vector<double>> run_optimiser(const Attributes& node, const std::vector<HostTensor>& inputs) {
  const std::size_t states = node.node().op_type == "Adam" ? 2 : 1, tensors = (inputs.size() - 2) / (2 + states);
  const auto backend = make_backend("eigen");
  Device& device = backend->device();
  std::vector<std::vector<double>> outputs((1 + states) * tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    const auto input = [&](std::size_t kind) -> const HostTensor& { return inputs.at(2 + kind * tensors + i); };
    const int count = static_cast<int>(input(0).values.size());
    const Shape shape{1, count, 1, 1};
    std::array<Buffer, 4> rows;  // X, G and the states
    const auto row = [&](std::size_t kind) {
      return Tensor{rows[kind].data(), shape, input(0).dtype, Layout::nchw, count};
    };
    for (std::size_t kind = 0; kind < 2 + states; ++kind) {
      rows[kind] = Buffer(device, static_cast<std::size_t>(count) * size_of(input(0).dtype));
      upload(device, row(kind), std::span<const double>(input(kind).values));
    }
    const UpdateFactors rule = rule_of_node(node, inputs[0].values[0], static_cast<std::uint64_t>(inputs[1].values[0]));
    backend->update({rule,
                     {.dtype = input(0).dtype,
                      .count = count,
                      .p = rows[0].data(),
                      .g = rows[1].data(),
                      .first = rows[2].data(),
                      .second = rows[3].data()}});
    for (std::size_t output = 0; output <= states; ++output) {
      std::vector<double>& values = outputs[output * tensors + i];
      values.resize(static_cast<std::size_t>(count));
      download(device, std::span<double>(values), row(output == 0 ? 0 : 1 + output));
    }
  }
  return outputs;
}

/// A plan of the loss alone.
class Loss {
 public:
  Loss(int images, int classes, int pixels)
      : backend_(make_backend("eigen")),
        plan_(graph_of(images, classes, pixels), *backend_, {.mode = Mode::inference}) {}

  double operator()(std::span<const double> logits, std::span<const double> labels) {
    upload(backend_->device(), plan_.input("logits"), logits);
    upload(backend_->device(), plan_.input("labels"), labels);
    plan_.forward();
    std::array<double, 2> found{};
    download(backend_->device(), std::span<double>(found), plan_.output());
    return found[0];
  }

 private:
  static Graph graph_of(int images, int classes, int pixels) {
    Graph graph("loss");
    const Value logits = graph.input({images, classes, pixels, 1}, "logits");
    softmax_cross_entropy(logits, graph.input({images, 1, pixels, 1}, "labels"));
    return graph;
  }

  std::shared_ptr<Backend> backend_;
  Plan plan_;
};

/// All axes after the classes are pixels. A sum is the mean times the rows that count; each loss is that of its row.
std::vector<std::vector<double>> run_loss(const Attributes& node, const std::vector<HostTensor>& inputs) {
  if (node.node().op_type == "NegativeLogLikelihoodLoss")
    throw Unsupported(
        "it takes log-probabilities, which need not add up to 1: it would need a loss without its softmax");
  if (node.node().outputs.size() > 1)
    throw Unsupported("its output 'log_prob' is used: it would need the log-probabilities as a value");
  if (inputs.size() > 2) throw Unsupported("it has a weight for each class: it would need an input of the op");
  const auto &logits = inputs[0].values, &given = inputs[1].values;
  const auto images = static_cast<std::size_t>(inputs[0].extents.at(0));
  const auto classes = static_cast<std::size_t>(inputs[0].extents.at(1));
  const std::size_t pixels = given.size() / images;
  std::vector<double> labels = given;
  double counted = 0;
  for (double& label : labels) {
    if (node.has("ignore_index") && label == static_cast<double>(node.integer("ignore_index", 0)))
      label = -1;
    else
      ++counted;
  }
  const std::string reduction = node.text("reduction", "mean");
  if (reduction != "none") {
    Loss mean(static_cast<int>(images), static_cast<int>(classes), static_cast<int>(pixels));
    return {{mean(logits, labels) * (reduction == "sum" ? counted : 1)}};
  }
  Loss one(1, static_cast<int>(classes), 1);
  std::vector<double> losses, row(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t c = 0; c < classes; ++c) row[c] = logits[(i / pixels * classes + c) * pixels + i % pixels];
    losses.push_back(one(row, {&labels[i], 1}));
  }
  return {losses};
}

bool is_optimiser(const onnx::NodeMessage& node) {
  return node.domain == "ai.onnx.preview.training" &&
         (node.op_type == "Adam" || node.op_type == "Adagrad" || node.op_type == "Momentum");
}

}  // namespace

bool is_training_case(const onnx::GraphMessage& graph) {
  if (graph.nodes.size() != 1) return false;
  const onnx::NodeMessage& node = graph.nodes[0];
  return is_optimiser(node) || node.op_type == "SoftmaxCrossEntropyLoss" || node.op_type == "NegativeLogLikelihoodLoss";
}

std::vector<std::vector<double>> run_training_case(const onnx::GraphMessage& graph, const std::string& file,
                                                   const std::vector<HostTensor>& inputs) {
  const Attributes node(graph.nodes[0], file);
  return is_optimiser(graph.nodes[0]) ? run_optimiser(node, inputs) : run_loss(node, inputs);
}

bool is_norm_by_batch(const onnx::GraphMessage& graph, const std::string& file) {
  return graph.nodes.size() == 1 && graph.nodes[0].op_type == "BatchNormalization" &&
         Attributes(graph.nodes[0], file).integer("training_mode", 0) != 0;
}

std::vector<std::vector<double>> run_norm_by_batch(const onnx::ModelMessage& message, const std::filesystem::path& file,
                                                   const std::vector<HostTensor>& inputs) {
  const onnx::GraphMessage& graph = message.graph.value();
  OnnxOptions options{.training = true};
  options.output = graph.outputs.at(0).name;
  for (std::size_t i = 1; i < inputs.size(); ++i) options.constants[std::string(graph.inputs.at(i).name)] = inputs[i];
  const OnnxModel model = std::get<OnnxModel>(onnx::Importer(message, options, file).run_or_fold());
  const auto backend = make_backend("eigen");
  Device& device = backend->device();
  Plan plan(model.graph, *backend, {.mode = Mode::training});
  load_weights(plan, model.weights);
  upload(device, plan.input(), to_graph(model.inputs.at(0), inputs[0].values));
  plan.forward();
  const auto numbers = [&](const Tensor& tensor) {
    std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
    download(device, std::span<double>(values), tensor);
    return values;
  };
  const std::string norm = model.graph.nodes().back().name;
  std::vector<double> variance = numbers(plan.state(norm + ".running_var"));
  // The part of the batch is the unbiased variance here, and the population's there.
  const double remains = Attributes(graph.nodes[0], file.string()).number("momentum", 0.9);
  const Shape x = plan.input().shape;
  const double count = static_cast<double>(x.n) * static_cast<double>(x.plane());
  for (std::size_t c = 0; c < variance.size(); ++c) {
    const double before = remains * inputs.at(4).values[c];
    variance[c] = before + (variance[c] - before) * (count - 1) / count;
  }
  return {from_graph(model.output, numbers(plan.output())), numbers(plan.state(norm + ".running_mean")), variance};
}

bool is_by_chance(const onnx::GraphMessage& graph, const TensorFile& constants) {
  if (graph.nodes.size() != 1 || graph.nodes[0].op_type != "Dropout" || graph.nodes[0].inputs.size() < 3) return false;
  const auto number = [&](std::size_t input, double otherwise) {
    const auto found = constants.find(std::string(graph.nodes[0].inputs[input]));
    return found == constants.end() ? otherwise : found->second.values.at(0);
  };
  return number(2, 0) != 0 && number(1, 0.5) != 0;
}

}  // namespace lamina::test
