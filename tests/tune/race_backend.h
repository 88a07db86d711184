#pragma once
// A backend whose algorithms take times that a test sets, on a simulated clock.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/backends/common/algorithms.h"
#include "tests/support/queued_device.h"

namespace lamina::test {

/// An algorithm: its times in run 0, 1, ..., and its declared properties.
struct Way {
  std::string name;
  std::function<double(int run)> seconds;
  double max_error = 1e-6;
  std::size_t workspace_bytes = 0;
  bool deterministic = true;
  std::size_t prepared_bytes = 0;  ///< bytes in which `prepare` writes the algorithm's name; forward checks it
  double launch_seconds = 0;       ///< the host's time, before the device can begin
};

/// A backend with these algorithms in every pass of a convolution. Other ops have only "direct", which computes
/// nothing.
class RaceBackend final : public Backend {
 public:
  explicit RaceBackend(std::vector<Way> ways) : ways_(std::move(ways)) {}

  std::string_view name() const override { return "race"; }
  std::string available() const override { return {}; }
  std::string describe() override { return "algorithms that take a given time"; }
  QueuedDevice& device() override { return device_; }
  std::vector<std::string> algorithms(const Spec&, Pass) const override;
  Lowered lower(const Spec&, const Choice&) override;

  int runs() const { return static_cast<int>(log.size()); }

  std::vector<std::string> log;     ///< runs in their order, such as "forward a"
  std::vector<std::string> faults;  ///< faults that kernels found in their arguments

 private:
  Lowered::Step step_of(const Way&, const Spec&, Pass);

  std::vector<Way> ways_;
  std::map<std::string, int> runs_of_;
  QueuedDevice device_;
};

}  // namespace lamina::test
