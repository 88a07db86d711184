#pragma once
// Which row runs, and how long the rest will take, on standard error.

#include <chrono>
#include <string>
#include <vector>

#include "rows.h"

namespace lamina::bench {

class Progress {
 public:
  /// What lies ahead. Measures the peak of each backend that takes part, for a first guess.
  Progress(Workshop&, const std::vector<Row>& rows);

  double guessed_seconds() const { return left_seconds(); }
  void show(const Row&, int pass,
            int passes);  ///< pass 0 warms up; a line that is written over (terminal), or one per group
  void pass_done(const Group&);
  void group_failed(const Group&, int passes_left);
  void clear() const;  ///< before other text is written

 private:
  double left_seconds() const;

  bool terminal_;
  double total_ = 0, done_ = 0;  ///< floating-point operations
  double guessed_rate_ = 0;      ///< operations per second
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Group* shown_ = nullptr;
  std::size_t group_count_ = 0, group_ = 0;
};

/// Passes of a group with the one that warms up.
int passes_with_warm_up(const Workshop&, const Group&);

}  // namespace lamina::bench
