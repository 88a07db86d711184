// How far an epoch is.

#include "screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bench/io/quantities.h"

namespace lamina::bench {

std::string progress_line(const lamina::Progress& at, std::uint64_t epochs, double samples_per_second,
                          double seconds_left) {
  constexpr std::int64_t width = 20;
  const std::int64_t full = width * at.batch / at.batches;
  return fmt::format("epoch {}/{}  [{}{}] {:3} %  {:.0f} samples/s  {} left", at.epoch + 1, epochs,
                     std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(width - full), ' '), 100 * at.batch / at.batches,
                     samples_per_second, seconds_text(seconds_left));
}

TrainingScreen::TrainingScreen(std::uint64_t epochs) : terminal_(isatty(STDERR_FILENO) == 1), epochs_(epochs) {}

void TrainingScreen::batch_done(const lamina::Progress& at) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (samples_ == 0 || at.epoch != epoch_) {
    epoch_ = at.epoch;
    first_batch_ = at.batch;
    start_ = now;
    samples_ = 1;
    return;
  }
  samples_ += at.samples;
  constexpr std::chrono::milliseconds pause(200);
  if (now - shown_ < pause) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto done = static_cast<double>(at.batch - first_batch_);
  const double left = seconds / done * static_cast<double>(at.batches - at.batch);
  fmt::print(stderr, "\r{}\x1b[K", progress_line(at, epochs_, static_cast<double>(samples_) / seconds, left));
  std::fflush(stderr);
}

void TrainingScreen::clear() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace lamina::bench
