#pragma once
// The answers of a sweep in words, with intervals.
// tests/data/sweep_answers.json has answers to made-up times.

#include <optional>
#include <string>
#include <vector>

#include "lamina/statistics.h"

namespace lamina::bench {

/// A measured point of a series.
struct SweepPoint {
  int batch = 0, threads = 0;
  std::vector<double> seconds{};  ///< by pass
  std::string failure{};          ///< why there are none
  double others_share = 0;        ///< of all processors' time, by other programs meanwhile
};

struct Answer {
  std::string what;            ///< "batch_flat", "largest_batch", "best_threads", "odd_batches"
  std::optional<int> value{};  ///< a batch or a number of threads; unset: there is none
  std::string text;
};

/// The batch from which on a doubling gains less than 5 % per image. Of the points, which ascend, those count whose
/// batch is twice that of the one before, or more.
std::optional<Answer> batch_flat(const std::vector<SweepPoint>&);

/// The number of threads with the least time, and all others that are as good within noise.
std::optional<Answer> best_threads(const std::vector<SweepPoint>&);

/// Whether one image less or more than an even batch is cheaper per image: of the largest that has both.
std::optional<Answer> odd_batches(const std::vector<SweepPoint>&);

/// A sentence after an answer: other programs took much time during its points. Empty if they did not.
std::string load_text(const std::vector<SweepPoint>&);

/// A sentence after an answer: its points have too few passes for an interval of 95 %. Empty if they have enough.
std::string passes_text(const std::vector<SweepPoint>&);

struct LargestRun {
  int predicted = 0;          ///< 0: not even one image fits
  bool at_least = false;      ///< larger ones were not predicted
  bool ran = false;           ///< the predicted batch did
  bool next_refused = false;  ///< and one image more was out of memory
  std::string not_run{};      ///< why it did not run, if it was not tried
  std::string limit{};        ///< "2.00 GiB"
};
Answer largest_batch(const LargestRun&);

}  // namespace lamina::bench
