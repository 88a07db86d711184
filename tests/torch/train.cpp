// Trains a workload in f64 on its synthetic set, without dropout, and writes down what another program needs to do the
// same: initial parameters, batches, and the loss of each step.
// usage: torch_train WORKLOAD STEPS WIDTH_DIVISOR SHARE OUT
// OUT gets "initial.<parameter>", "final.<parameter>", "x" and "labels" of all steps, "losses", and "rate" of each
// step.

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "lamina/lamina.h"

namespace {

struct Enough {};

void keep_parameters(lamina::TensorFile& file, const std::string& prefix, const lamina::Plan& plan) {
  for (auto& [name, tensor] : lamina::save_weights(plan)) file[prefix + name] = std::move(tensor);
}

lamina::TensorFile run(const std::string& name, int steps, int width_divisor, double share) {
  const lamina::Workload& workload = lamina::workload(name);
  lamina::PreparedWorkload ready =
      lamina::prepare(workload, {.share = share, .width_divisor = width_divisor, .dropout = false, .seed = 1});
  const auto backend = lamina::make_backend("eigen");
  ready.options.plan.dtype = lamina::DType::f64;
  ready.options.validation = nullptr;
  ready.options.after_batch = [&](const lamina::Progress& at) {
    if (at.batch == steps) throw Enough();
  };
  lamina::Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
  lamina::TensorFile file;
  keep_parameters(file, "initial.", trainer.plan());

  lamina::Loader loader(*ready.training,
                        {.batch = workload.batch, .drop_last = true, .seed = ready.options.seed, .threads = 0});
  lamina::HostTensor x, labels, rates;
  rates.dtype = lamina::DType::f64;
  loader.start(0);
  for (int step = 0; step < steps; ++step) {
    const lamina::Batch* batch = loader.next();
    if (batch == nullptr) throw lamina::UsageError("an epoch has fewer steps; give a larger share");
    x.values.insert(x.values.end(), batch->x.begin(), batch->x.end());
    labels.values.insert(labels.values.end(), batch->labels.begin(), batch->labels.end());
    rates.values.push_back(ready.options.learning_rate(static_cast<std::uint64_t>(step)));
  }
  const lamina::Shape sample = ready.training->shape();
  x.extents = {steps, workload.batch, sample.c, sample.h, sample.w};
  labels.extents = {steps, workload.batch};
  rates.extents = {steps};

  try {
    trainer.train(1);
    throw lamina::UsageError("the epoch ended too early");
  } catch (const Enough&) {
  }
  lamina::HostTensor losses{.dtype = lamina::DType::f64, .extents = {steps}, .values = {}};
  for (const lamina::Score& score : trainer.batch_scores()) losses.values.push_back(score.loss);
  keep_parameters(file, "final.", trainer.plan());
  file["x"] = std::move(x);
  file["labels"] = std::move(labels);
  file["rates"] = std::move(rates);
  file["losses"] = std::move(losses);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: torch_train WORKLOAD STEPS WIDTH_DIVISOR SHARE OUT\n";
    return 2;
  }
  try {
    lamina::write_safetensors(argv[5], run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atof(argv[4])));
  } catch (const std::exception& error) {
    std::cerr << "torch_train: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
