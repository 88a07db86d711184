#pragma once
// What a training changes, and comparing two.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "lamina/train.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// Everything that a training changes.
inline std::vector<Values> everything(Plan& plan) {
  Device& device = plan.backend().device();
  std::vector<Values> all;
  for (const std::string& name : plan.parameter_names()) all.push_back(read(device, plan.parameter(name)));
  for (const std::string& name : plan.optimiser_state_names()) all.push_back(read(device, plan.optimiser_state(name)));
  for (const std::string& name : plan.state_names())
    if (const Tensor state = plan.state(name); state.dtype != DType::u64) {
      all.push_back(read(device, state));
    } else {
      std::uint64_t step = 0;
      device.download(&step, state.data, sizeof step);
      all.push_back({static_cast<double>(step)});
    }
  return all;
}

inline bool same(const EpochResult& a, const EpochResult& b) {
  return a.epoch == b.epoch && a.training.loss == b.training.loss && a.training.accuracy == b.training.accuracy &&
         a.validation.loss == b.validation.loss && a.validation.accuracy == b.validation.accuracy;
}

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lamina::test
