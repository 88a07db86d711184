#pragma once
// How far an epoch is, on standard error: a line that is written over on a terminal, nothing elsewhere.

#include <chrono>
#include <cstdint>
#include <string>

#include "lamina/train.h"

namespace lamina::bench {

/// "epoch 3/20  [############        ]  61 %  25310 samples/s  2 s left"
std::string progress_line(const lamina::Progress&, std::uint64_t epochs, double samples_per_second,
                          double seconds_left);

class TrainingScreen {
 public:
  explicit TrainingScreen(std::uint64_t epochs);
  ~TrainingScreen() { clear(); }
  TrainingScreen(const TrainingScreen&) = delete;  // two would clear one line
  TrainingScreen& operator=(const TrainingScreen&) = delete;
  void batch_done(const lamina::Progress&);
  void clear();  ///< before other text is written

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  std::uint64_t epochs_, epoch_ = 0;
  std::int64_t first_batch_ = 0, samples_ = 0;
  Clock::time_point start_{}, shown_{};
};

}  // namespace lamina::bench
