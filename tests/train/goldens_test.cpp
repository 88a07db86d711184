// Trainings of 100 steps against PyTorch's: the losses under every optimiser (data/goldens/make_training.py), and the
// parameters of a network that was exported with its constants (make_onnx_training.py).

#include <algorithm>
#include <cmath>
#include <set>

#include "lamina/onnx.h"
#include "lamina/plan.h"
#include "lamina/weights.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/numbers/larger.h"
#include "tests/support/numbers/values.h"
#include "tests/train/backends.h"

using namespace lamina;
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
  const Values &x = golden.at("x").values, &labels = golden.at("labels").values;
  constexpr std::size_t steps = 100, batches = 10, batch = 8;
  Graph graph("two layers");
  const Value classes = graph.input({batch, 1, 1, 1}, "labels");
  Value y = relu(fully_connected(graph.input({batch, 12, 1, 1}, "x"), "first", {.outputs = 16}));
  softmax_cross_entropy(fully_connected(y, "second", {.outputs = 5}), classes);
  for (const std::string& name : training_backends()) {
    const auto backend = make_or_skip(name);
    Device& device = backend->device();
    for (const Case& c : cases()) {
      // The slower kernels run one case for each rule.
      if (name != "eigen" &&
          !std::set<std::string>{"nesterov", "rmsprop", "adagrad", "adadelta", "clipped"}.contains(c.name))
        continue;
      Options options;
      options.dtype = DType::f64;
      options.optimiser = c.optimiser;
      options.clip_norm = c.clip_norm;
      Plan plan(graph, *backend, options);
      for (const std::string& p : plan.parameter_names()) write(device, plan.parameter(p), golden.at(p).values);
      write(device, plan.output_gradient(), {1, 0});
      const Values& wanted = golden.at("losses." + c.name).values;
      double worst = 0;
      for (std::size_t step = 0; step < steps; ++step) {
        const auto part = [&](const Values& all, std::size_t length) {
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(step % batches * length);
          return Values(first, first + static_cast<std::ptrdiff_t>(length));
        };
        write(device, plan.input("x"), part(x, batch * 12));
        write(device, plan.input("labels"), part(labels, batch));
        plan.forward();
        worst = larger(worst, std::abs(read(device, plan.output())[0] - wanted[step]));
        plan.backward();
        plan.update(c.rate(step));
      }
      INFO(name << ", " << c.name);
      CHECK(wanted.back() < wanted[9]);  // the same batch, ninety steps earlier
      CHECK(worst < 1e-9);
    }
  }
}

TEST_CASE("a network with constants that PyTorch exported trains as there: the parameters after 100 steps to 1e-9") {
  const std::string folder = test::data("goldens/");
  const TensorFile golden = read_safetensors(folder + "onnx_training.safetensors");
  const Values& labels = golden.at("labels").values;
  for (const char* exporter : {"torchscript", "dynamo"}) {
    const OnnxModel model = read_onnx(folder + "onnx_training_" + exporter + ".onnx");
    for (const std::string& name : training_backends()) {
      const auto backend = make_or_skip(name);
      if (backend == nullptr) continue;
      CAPTURE(exporter, name);
      Plan plan(model.graph, *backend, {.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.01}});
      Device& device = backend->device();
      load_weights(plan, model.weights);
      write(device, plan.input(), golden.at("x").values);
      const std::size_t classes = 4;
      for (int step = 0; step < 100; ++step) {
        plan.forward();
        Values dy = read(device, plan.output());  // the logits, then the gradient of their mean cross entropy
        for (std::size_t row = 0; row < labels.size(); ++row) {
          double sum = 0;
          for (std::size_t k = 0; k < classes; ++k) sum += dy[row * classes + k] = std::exp(dy[row * classes + k]);
          for (std::size_t k = 0; k < classes; ++k) {
            double& d = dy[row * classes + k];
            d = (d / sum - (static_cast<double>(k) == labels[row] ? 1 : 0)) / static_cast<double>(labels.size());
          }
        }
        write(device, plan.output_gradient(), dy);
        plan.backward();
        plan.update(0.05);
      }
      const std::vector<std::string> parameters = plan.parameter_names();
      REQUIRE(parameters.size() == 7);
      const auto check = [&](const std::string& golden_name, const Values& got) {
        const Values& want = golden.at(golden_name).values;
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(got[i] - want[i]) < 1e-9);
      };
      for (std::size_t i = 0; i < parameters.size(); ++i)
        check("parameter" + std::to_string(i), read(device, plan.parameter(parameters[i])));
      for (const std::string& state : plan.state_names())
        if (const std::size_t at = state.find("running_"); at != std::string::npos)
          check(state.substr(at), read(device, plan.state(state)));
    }
  }
}
