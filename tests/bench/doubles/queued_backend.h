#pragma once
// Eigen on a modelled device with a queue. A test sets how long each kernel takes the host and the device.

#include <functional>

#include "tests/support/backend.h"
#include "tests/support/queued_device.h"
#include "tests/support/wrapped_backend.h"

namespace lamina::test {

class QueuedBackend final : public WrappedBackend {
 public:
  explicit QueuedBackend(Backend& inner = oracle()) : WrappedBackend(inner) { device_.longest = 5e-3; }

  double host_seconds = 10e-6, device_seconds = 1e-3;  ///< time of each kernel
  int kernels_run = 0;

  QueuedDevice& device() override { return device_; }
  std::function<void()> at_peak = [] {};  ///< called when the peak is asked for
  double peak_flops_per_second(DType) override { return at_peak(), 1e12; }

  Lowered lower(const Spec& spec, const Choice& choice) override {
    Lowered lowered = WrappedBackend::lower(spec, choice);
    for (Lowered::Step& step : lowered.steps)
      step.kernel = around(
          step.kernel, [](const Args&) {},
          [this](const Args&) {
            ++kernels_run;
            device_.launch(host_seconds, device_seconds);
          });
    return lowered;
  }

 private:
  QueuedDevice device_;
};

}  // namespace lamina::test
