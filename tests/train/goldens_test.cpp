// Trainings of 100 steps against PyTorch's: the losses under every optimiser (data/goldens/make_training.py), and the
// parameters of a network that was exported with its constants (make_onnx_training.py).

#include "lamina/onnx.h"
#include "lamina/safetensors.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/train/backends.h"
#include "tests/train/runs.h"

using namespace lamina::test;

namespace {

struct Case {
  std::string name;
  Optimiser optimiser;
  Schedule rate;
  double clip_norm = 0;
};

std::vector<Case> cases() {
  const Sgd nesterov{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01};
  return {{"sgd", Sgd{}, constant_rate(0.1)},
          {"momentum", Sgd{.momentum = 0.9}, constant_rate(0.05)},
          {"nesterov", nesterov, constant_rate(0.05)},
          {"rmsprop", RmsProp{}, constant_rate(0.01)},
          {"keras_rmsprop", named_optimiser("keras_rmsprop").optimiser, constant_rate(0.01)},
          {"adagrad", Adagrad{.weight_decay = 0.01}, inverse_time(0.1, 0.02)},
          {"keras_adagrad", named_optimiser("keras_adagrad").optimiser, constant_rate(0.1)},
          {"adadelta", Adadelta{}, constant_rate(1)},
          {"keras_adadelta", named_optimiser("keras_adadelta").optimiser, constant_rate(1)},
          {"adam", Adam{}, constant_rate(0.01)},
          {"adam_decayed", Adam{.weight_decay = 0.05}, constant_rate(0.01)},
          {"adamw", AdamW{.weight_decay = 0.05}, constant_rate(0.01)},
          {"keras_sgd", KerasSgd{}, constant_rate(0.1)},
          {"keras_momentum", KerasSgd{.momentum = 0.9}, constant_rate(0.05)},
          {"keras_nesterov", KerasSgd{.momentum = 0.9, .nesterov = true}, constant_rate(0.05)},
          {"keras_adam", KerasAdam{}, constant_rate(0.01)},
          {"clipped", Adam{}, constant_rate(0.01), 0.3},
          {"decaying", KerasSgd{.momentum = 0.9}, inverse_time(0.1, 0.02)},
          {"cosine", Sgd{.momentum = 0.9}, cosine(0.1, 0.01, 80)}};
}

}  // namespace

TEST_CASE("100 steps under every optimiser have PyTorch's losses to 1e-9") {
  const TensorFile golden = read_safetensors(test::data("goldens/training.safetensors"));
  Graph graph("two layers");
  const Value classes = graph.input({8, 1, 1, 1}, "labels");
  Value y = relu(fully_connected(graph.input({8, 12, 1, 1}, "x"), "first", {.outputs = 16}));
  softmax_cross_entropy(fully_connected(y, "second", {.outputs = 5}), classes);
  for (const std::string& name : training_backends()) {
    const auto backend = make_or_skip(name);
    for (const Case& c : cases()) {
      // Slower kernels run one case for each rule.
      if (name != "eigen" &&
          !std::set<std::string>{"nesterov", "rmsprop", "adagrad", "adadelta", "clipped"}.contains(c.name))
        continue;
      Plan plan(graph, *backend, {.dtype = DType::f64, .optimiser = c.optimiser, .clip_norm = c.clip_norm});
      const Values& wanted = golden.at("losses." + c.name).values;
      INFO(name << ", " << c.name);
      CHECK(wanted.back() < wanted[9]);  // the same batch, ninety steps earlier
      CHECK(worst_loss(plan, golden, "x", wanted, c.rate) < 1e-9);
    }
  }
}

namespace {

/// The gradient of the mean cross entropy of rows of logits.
Values cross_entropy_gradient(Values dy, const Values& labels) {
  const std::size_t classes = dy.size() / labels.size();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += dy[row * classes + k] = std::exp(dy[row * classes + k]);
    for (std::size_t k = 0; k < classes; ++k) {
      double& d = dy[row * classes + k];
      d = (d / sum - (static_cast<double>(k) == labels[row] ? 1 : 0)) / static_cast<double>(labels.size());
    }
  }
  return dy;
}

/// The network of make_onnx_training.py, with the names that its files of torchscript have.
Graph siamese() {
  Graph graph("siamese");
  std::vector<Value> towers;
  for (const std::string use : {"", "_1"}) {
    const Value x = graph.input({6, 3, 9, 8}, use.empty() ? "input.1" : "input.5");
    const Value y = relu(conv(x, "/conv" + use + "/Conv", {.channels = 5, .kernel = 3}));
    towers.push_back(batch_norm(y, "/norm" + use + "/BatchNormalization"));
  }
  const Value both = relu(batch_norm(concat(towers), "/other/BatchNormalization"));
  fully_connected(global_average_pool(both), "/head/Gemm", {.outputs = 4});
  graph.share_all("/conv_1/Conv", "/conv/Conv");
  graph.share_all("/norm_1/BatchNormalization", "/norm/BatchNormalization");
  return graph;
}

Graph recursive() {
  Graph graph("recursive");
  Value x = relu(conv(graph.input({6, 3, 9, 8}, "input.1"), "/stem/Conv", {.channels = 5, .kernel = 3}));
  for (const std::string use : {"", "_1", "_2"})
    x = relu(conv(x, "/again" + use + "/Conv", {.channels = 5, .kernel = 3, .pad = 1}));
  fully_connected(global_average_pool(x), "/head/Gemm", {.outputs = 4});
  graph.share_all("/again_1/Conv", "/again/Conv");
  graph.share_all("/again_2/Conv", "/again_1/Conv");
  return graph;
}

Graph tied() {
  Graph graph("tied");
  Value x = embedding(graph.input({6, 1, 7, 1}, "input.1"), "/table/Gather", {.vocabulary = 9, .features = 5});
  x = relu(conv(x, "/conv/Conv", {.channels = 5, .kernel = {3, 1}, .pad = {1, 0}}));
  fully_connected(max_pool(x, "largest", {.window = {7, 1}, .stride = 1}), "/head/Gemm", {.outputs = 9});
  graph.share("/head/Gemm.weight", "/table/Gather.weight");
  return graph;
}

/// Trains 100 steps of a network that was read, or of an equal one, from the weights that were read.
void check_training(const OnnxModel& model, const Graph& graph, const TensorFile& golden, Backend& backend) {
  Plan plan(graph, backend, {.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.01}});
  Device& device = backend.device();
  load_weights(plan, model.weights);
  for (const OnnxValue& input : model.inputs)
    write(plan, plan.input(input.node),
          to_graph(input, golden.at(&input == &model.inputs.front() ? "x" : "second").values));
  for (int step = 0; step < 100; ++step) {
    plan.forward();
    const Values logits = from_graph(model.output, read(plan, plan.output()));
    write(plan, plan.output_gradient(),
          to_graph(model.output, cross_entropy_gradient(logits, golden.at("labels").values)));
    plan.backward();
    plan.update(0.05);
  }
  std::size_t checked = 0;
  const auto check = [&](const char* what, std::size_t i, const Tensor& tensor) {
    const Values got = read(device, tensor), &want = golden.at(what + std::to_string(i)).values;
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < want.size(); ++k) CHECK(std::abs(got[k] - want[k]) < 1e-9);
    ++checked;
  };
  const std::vector<std::string> parameters = plan.parameter_names();
  for (std::size_t i = 0; i < parameters.size(); ++i) check("parameter", i, plan.parameter(parameters[i]));
  std::size_t states = 0;
  for (const std::string& state : plan.state_names())
    if (state.find("running_") != state.npos) check("state", states++, plan.state(state));
  CHECK(checked + 1 + model.inputs.size() == golden.size());  // all tensors that PyTorch has
}

}  // namespace

TEST_CASE("networks that PyTorch exported train as there, and so in C++: the parameters after 100 steps to 1e-9") {
  const std::string folder = test::data("goldens/");
  const std::map<std::string, Graph (*)()> in_cpp = {{"siamese", siamese}, {"recursive", recursive}, {"tied", tied}};
  for (const std::string network :
       {"onnx", "siamese", "recursive", "tied", "tied_rows", "unet", "generator", "recurrent", "reductions"})
    for (const std::string exporter : {"torchscript", "dynamo"}) {
      const TensorFile golden = read_safetensors(folder + network + "_training.safetensors");
      OnnxOptions options;
      // gains are a buffer, which no file says
      if (network == "onnx" && exporter == "torchscript") options.trains["gains"] = false;
      const OnnxModel model = read_onnx(folder + network + "_training_" + exporter + ".onnx", options);
      for (const std::string& name : training_backends()) {
        CAPTURE(network, exporter, name);
        const bool in_full = name == "eigen";  // the slower kernels run only six networks of one exporter
        if (!in_full && (exporter == "dynamo" || network == "recursive" || network == "tied_rows")) continue;
        check_training(model, model.graph, golden, *make_or_skip(name));
        if (in_full && exporter == "torchscript" && in_cpp.contains(network))
          check_training(model, in_cpp.at(network)(), golden, *make_or_skip(name));
      }
    }
}
