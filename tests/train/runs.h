#pragma once
// Helpers for trainings: the tensors that a training changes, a comparison of 100 losses with PyTorch, and runs that
// stop.

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "lamina/train.h"
#include "lamina/weights.h"
#include "tests/support/cases/plans.h"

namespace lamina::test {

/// All tensors that a training changes.
inline std::vector<Values> everything(Plan& plan) {
  std::vector<Values> all;
  for (const std::string& name : plan.parameter_names()) all.push_back(read(plan, plan.parameter(name)));
  for (const std::string& name : plan.optimiser_state_names()) all.push_back(read(plan, plan.optimiser_state(name)));
  for (const std::string& name : plan.state_names()) all.push_back(read_state(plan, name));
  return all;
}

/// Trains a plan for 100 steps, from the parameters in a golden file and on its ten batches of "labels" and `samples`.
/// Returns the largest difference of a step's loss from PyTorch's loss.
inline double worst_loss(Plan& plan, const TensorFile& golden, const char* samples, const Values& wanted,
                         const Schedule& rate) {
  for (const std::string& name : plan.parameter_names()) write(plan, plan.parameter(name), golden.at(name).values);
  write(plan, plan.output_gradient(), {1, 0});
  double worst = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    for (const char* name : {samples, "labels"}) {
      const std::int64_t count = plan.input(name).shape.count();
      const auto first = golden.at(name).values.begin() + static_cast<std::ptrdiff_t>(step % 10) * count;
      write(plan, plan.input(name), Values(first, first + count));
    }
    plan.forward();
    worst = larger(worst, std::abs(read(plan, plan.output())[0] - wanted.at(step)));
    plan.backward();
    plan.update(rate(step));
  }
  return worst;
}

inline bool same(const EpochResult& a, const EpochResult& b) {
  return a.epoch == b.epoch && a.training.loss == b.training.loss && a.training.accuracy == b.training.accuracy &&
         a.validation.loss == b.validation.loss && a.validation.accuracy == b.validation.accuracy;
}

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A callback that throws once: after `batches` + 1 batches.
inline auto stop_after(int batches) {
  return [left = batches](const Progress&) mutable {
    if (left-- == 0) throw Interrupted("stopped");
  };
}

}  // namespace lamina::test
