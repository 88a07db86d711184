// Trains a workload in f64 on its synthetic set, without dropout. Writes all that another program needs for the same
// training: initial parameters, batches, and the loss of each step.
// usage: torch_train WORKLOAD STEPS WIDTH_DIVISOR BATCH SHARE OPTIMISER OUT
//
// BATCH 0 is the workload's batch. OPTIMISER "own" is the workload's optimiser with its learning rates. Other values
// are a name from optimiser_names() with parameters of the optimiser and of an inverse-time learning rate, for example
// sgd,momentum=0.9,nesterov=1,rate=0.1,decay=0.02
//
// OUT gets "initial.<parameter>", "final.<parameter>", and for all steps "x", "labels", "losses" and "rates".

#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

#include "lamina/lamina.h"

using namespace lamina;

namespace {

struct Enough {};

/// The arguments of the command line.
struct Wanted {
  std::string workload, optimiser;
  int steps, width_divisor, batch;
  double share;
};

void keep_parameters(TensorFile& file, const std::string& prefix, const Plan& plan) {
  for (auto& [name, tensor] : save_weights(plan)) file[prefix + name] = std::move(tensor);
}

/// Sets a parameter of an optimiser by its name. Returns false if the optimiser has no such parameter.
struct SetNumber {
  const std::string& name;
  double value;

  template <class Optimiser>
  bool operator()(Optimiser& its) const {
    if constexpr (requires { its.momentum; }) {
      if (name == "momentum") return its.momentum = value, true;
      if (name == "nesterov") return its.nesterov = value != 0, true;
    }
    if constexpr (requires { its.weight_decay; })
      if (name == "weight_decay") return its.weight_decay = value, true;
    return false;
  }
};

void set_optimiser(TrainerOptions& options, const std::string& text) {
  if (text == "own") return;
  std::istringstream words(text);
  std::string word;
  std::getline(words, word, ',');
  NamedOptimiser found = named_optimiser(word);
  double decay = 0;
  while (std::getline(words, word, ',')) {
    const std::string name = word.substr(0, word.find('='));
    const double value = std::stod(word.substr(name.size() + 1));
    if (name == "rate") {
      found.learning_rate = value;
    } else if (name == "decay") {
      decay = value;
    } else if (!std::visit(SetNumber{name, value}, found.optimiser)) {
      throw UsageError(to_string(found.optimiser) + " has no number " + name);
    }
  }
  options.optimiser = found.optimiser;
  options.learning_rate = inverse_time(found.learning_rate, decay);
}

TensorFile run(const Wanted& wanted) {
  const int steps = wanted.steps;
  PreparedWorkload ready = prepare(workload(wanted.workload), {.share = wanted.share,
                                                               .width_divisor = wanted.width_divisor,
                                                               .batch = wanted.batch,
                                                               .dropout = false,
                                                               .seed = 1});
  const auto backend = make_backend("eigen");
  const int batch_size = ready.graph.node("labels").shape.n;
  set_optimiser(ready.options, wanted.optimiser);
  ready.options.plan.dtype = DType::f64;
  ready.options.validation = nullptr;
  ready.options.after_batch = [&](const Progress& at) {
    if (at.batch == steps) throw Enough();
  };
  Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
  TensorFile file;
  keep_parameters(file, "initial.", trainer.plan());

  Loader loader(*ready.training, {.batch = batch_size, .drop_last = true, .seed = ready.options.seed, .threads = 0});
  HostTensor x, labels, rates;
  rates.dtype = DType::f64;
  loader.start(0);
  for (int step = 0; step < steps; ++step) {
    const Batch* batch = loader.next();
    if (batch == nullptr) throw UsageError("an epoch has fewer steps; give a larger share");
    x.values.insert(x.values.end(), batch->x.begin(), batch->x.end());
    labels.values.insert(labels.values.end(), batch->labels.begin(), batch->labels.end());
    rates.values.push_back(ready.options.learning_rate(static_cast<std::uint64_t>(step)));
  }
  const Shape sample = ready.training->shape();
  x.extents = {steps, batch_size, sample.c, sample.h, sample.w};
  labels.extents = {steps, batch_size};
  rates.extents = {steps};

  try {
    trainer.train(1);
    throw UsageError("the epoch ended too early");
  } catch (const Enough&) {
  }
  HostTensor losses{.dtype = DType::f64, .extents = {steps}, .values = {}};
  for (const Score& score : trainer.batch_scores()) losses.values.push_back(score.loss);
  keep_parameters(file, "final.", trainer.plan());
  file["x"] = std::move(x);
  file["labels"] = std::move(labels);
  file["rates"] = std::move(rates);
  file["losses"] = std::move(losses);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: torch_train WORKLOAD STEPS WIDTH_DIVISOR BATCH SHARE OPTIMISER OUT\n";
    return 2;
  }
  try {
    write_safetensors(argv[7], run({.workload = argv[1],
                                    .optimiser = argv[6],
                                    .steps = std::atoi(argv[2]),
                                    .width_divisor = std::atoi(argv[3]),
                                    .batch = std::atoi(argv[4]),
                                    .share = std::atof(argv[5])}));
  } catch (const std::exception& error) {
    std::cerr << "torch_train: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
