#pragma once
// The answers of a sweep in words, with intervals.
// tests/data/sweep_answers.json has the answers for invented times.

#include <optional>
#include <string>
#include <vector>

#include "lamina/statistics.h"

namespace lamina::bench {

/// A measured point of a series.
struct SweepPoint {
  int batch = 0, threads = 0;
  std::vector<double> seconds{};  ///< seconds of each pass
  std::string failure{};          ///< reason why there are no seconds
  double others_share = 0;        ///< share of all processors' time that other programs took during the passes
};

struct Answer {
  std::string what;            ///< "batch_flat", "largest_batch", "best_threads", "odd_batches"
  std::optional<int> value{};  ///< batch or number of threads; unset: the answer has no number
  std::string text;
};

/// The batch from which on every doubling gains less than 5 % per image. The points must ascend. A point is used if its
/// batch is at least twice the batch of the last used point.
std::optional<Answer> batch_flat(const std::vector<SweepPoint>&);

/// The number of threads with the least time, and all numbers whose time is equal within noise.
std::optional<Answer> best_threads(const std::vector<SweepPoint>&);

/// Whether an image is cheaper in an odd batch. Compares an even batch with the batches that have one image less and
/// one image more: the largest even batch for which both were measured.
std::optional<Answer> odd_batches(const std::vector<SweepPoint>&);

struct LargestRun {
  int predicted = 0;          ///< predicted largest batch; 0: not even one image fits
  bool at_least = false;      ///< whether larger batches may fit, too, but were not predicted
  bool ran = false;           ///< whether the predicted batch ran
  bool next_refused = false;  ///< whether a batch with one image more was out of memory
  std::string not_run{};      ///< reason why the predicted batch was not tried
  std::string limit{};        ///< memory limit: "2.00 GiB"
};
Answer largest_batch(const LargestRun&);

}  // namespace lamina::bench
