// Trainings of 100 steps are compared with PyTorch: losses with every optimiser (data/goldens/make_training.py), and
// parameters of networks that PyTorch exported (make_onnx_training.py).

#include "lamina/onnx.h"
#include "lamina/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
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

TEST_CASE("100 steps with every optimiser have PyTorch's losses to 1e-9") {
  const TensorFile golden = read_safetensors(test::data("goldens/training.safetensors"));
  Graph graph("two layers");
  const Value classes = graph.input({8, 1, 1, 1}, "labels");
  Value y = relu(fully_connected(graph.input({8, 12, 1, 1}, "x"), "first", {.outputs = 16}));
  softmax_cross_entropy(fully_connected(y, "second", {.outputs = 5}), classes);
  for (const auto& backend : tested_backends()) {
    for (const Case& c : cases()) {
      // Backends other than eigen are slower, so they run one case for each rule.
      if (backend->name() != "eigen" &&
          !std::set<std::string>{"nesterov", "rmsprop", "adagrad", "adadelta", "clipped"}.contains(c.name))
        continue;
      Plan plan(graph, *backend, {.dtype = DType::f64, .optimiser = c.optimiser, .clip_norm = c.clip_norm});
      const Values& wanted = golden.at("losses." + c.name).values;
      INFO(backend->describe() << ", " << c.name);
      CHECK(wanted.back() < wanted[9]);  // wanted[9] is the same batch, ninety steps earlier
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

/// Trains a network from an ONNX file for 100 steps, and compares its parameters and running statistics.
void check_training(const OnnxModel& model, const TensorFile& golden, Backend& backend) {
  Plan plan(model.graph, backend, {.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.01}});
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

TEST_CASE("networks that PyTorch exported have PyTorch's parameters after 100 steps, to 1e-9") {
  const std::string folder = test::data("goldens/");
  for (const std::string network :
       {"onnx", "siamese", "recursive", "tied", "tied_rows", "unet", "generator", "recurrent", "reductions"})
    for (const std::string exporter : {"torchscript", "dynamo"}) {
      const TensorFile golden = read_safetensors(folder + network + "_training.safetensors");
      OnnxOptions options;
      // `gains` is a buffer, but torchscript's file does not say so
      if (network == "onnx" && exporter == "torchscript") options.trains["gains"] = false;
      const OnnxModel model = read_onnx(folder + network + "_training_" + exporter + ".onnx", options);
      for (const auto& backend : tested_backends()) {
        CAPTURE(network, exporter, backend->describe());
        // slower backends run only seven networks of one exporter
        if (backend->name() != "eigen" && (exporter == "dynamo" || network == "recursive" || network == "tied_rows"))
          continue;
        check_training(model, golden, *backend);
      }
    }
}
