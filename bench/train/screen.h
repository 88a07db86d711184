#pragma once
// How far a training is, on standard error: on a terminal a line that is written over, elsewhere one every ten seconds.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "bench/io/text.h"
#include "lamina/train.h"

namespace lamina::bench {

/// "epoch 3/20  [############        ]  61 %  25310 samples/s  2 s left; in all about 1 min 5 s, of which 40 s are
/// left" `seconds`: since the training began, or went on; `batches` and `samples`: done since then.
std::string progress_line(const lamina::Progress&, std::uint64_t epochs, double seconds, std::int64_t batches,
                          std::int64_t samples);

/// It writes from a thread of its own, as a batch or a validation may take minutes.
class TrainingScreen {
 public:
  /// `pause`: between two lines.
  TrainingScreen(std::uint64_t epochs, std::chrono::milliseconds pause, Print print);
  ~TrainingScreen() { writer_ = {}; }
  TrainingScreen(const TrainingScreen&) = delete;  // its writer has its address
  TrainingScreen& operator=(const TrainingScreen&) = delete;
  void batch_done(const lamina::Progress&);
  std::unique_lock<std::mutex> quiet() { return std::unique_lock(mutex_); }  ///< while it is held, nothing is written

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const;

  std::uint64_t epochs_;
  Print print_;
  std::mutex mutex_{};
  std::condition_variable_any ended_{};
  lamina::Progress at_{};
  Clock::time_point begun_ = Clock::now();   ///< once there is a batch, when the first was done
  std::int64_t batches_ = -1, samples_ = 0;  ///< done since then; -1: none at all
  std::jthread writer_;
};

}  // namespace lamina::bench
