#pragma once
// Which row runs, and how long the rest will take, on standard error.

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "bench/rows/rows.h"

namespace lamina::bench {

class Progress {
 public:
  /// `passes`: as asked. Measures the peak of each backend that takes part, for a first guess.
  Progress(Peaks&, const std::vector<Row>& rows, int passes);

  double guessed_seconds() const { return left_seconds(); }
  double guessed_seconds_of(const std::string& backend) const;  ///< of its rows alone, at the start; 0: not known
  /// A line that is written over (terminal), or one per group; pass 0 warms up.
  void show(const Row&, int pass, int passes);
  void pass_done(const Group&);
  void group_failed(const Group&, int passes_left);
  void clear() const;  ///< before other text is written

 private:
  double left_seconds() const;

  bool terminal_;
  double total_ = 0, done_ = 0;  ///< floating-point operations
  double guessed_rate_ = 0;      ///< operations per second
  std::map<std::string, double> guessed_seconds_of_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Group* shown_ = nullptr;
  std::size_t group_count_ = 0, group_ = 0;
};

/// Throws UsageError where the rows of cuda-host, an emulator, would take more than an hour: a filter may be missing.
void check_duration(const Progress&);

}  // namespace lamina::bench
