#pragma once
// Which row runs, and how long the rest will take, on standard error.

#include <chrono>
#include <vector>

#include "meter.h"

namespace lamina::bench {

class Progress final : public Watcher {
 public:
  /// `passes`: as asked. Measures the peak of each backend that takes part, for a first guess.
  Progress(Peaks&, const std::vector<Row>& rows, int passes);

  double left_seconds() const;  ///< 0: not known
  /// A line that is written over (terminal), or one per group; pass 0 warms up. `passes` 0: not known.
  void show(const Row&, int pass, int passes) override;
  void pass_done(const Group&) override;
  void group_failed(const Group&, int passes_left) override;

 private:
  double total_ = 0, done_ = 0;  ///< floating-point operations
  double guessed_rate_ = 0;      ///< operations per second
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Group* shown_ = nullptr;
  std::size_t group_count_ = 0, group_ = 0;
};

}  // namespace lamina::bench
