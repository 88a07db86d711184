// How far a training is.

#include "screen.h"

#include <fmt/format.h>

#include <utility>

#include "bench/io/text.h"

namespace lamina::bench {

std::string progress_line(const lamina::Progress& at, std::uint64_t epochs, double seconds, std::int64_t batches,
                          std::int64_t samples) {
  constexpr std::int64_t width = 20;
  const std::int64_t full = width * at.batch / at.batches, left = at.batches - at.batch;
  const double of_batch = seconds / static_cast<double>(batches);
  const auto later = static_cast<double>(epochs - at.epoch - 1) * static_cast<double>(at.batches);
  const double all_left = of_batch * (static_cast<double>(left) + later);
  return fmt::format("epoch {}/{}  [{}{}] {:3} %  {:.0f} samples/s  {} left; in all about {}, of which {} are left",
                     at.epoch + 1, epochs, std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(width - full), ' '), 100 * at.batch / at.batches,
                     static_cast<double>(samples) / seconds, seconds_text(of_batch * static_cast<double>(left)),
                     seconds_text(seconds + all_left), seconds_text(all_left));
}

TrainingScreen::TrainingScreen(std::uint64_t epochs, std::chrono::milliseconds pause, Print print)
    : epochs_(epochs), print_(std::move(print)), writer_([this, pause](std::stop_token stop) {
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) print_(line());
      }) {}

std::string TrainingScreen::line() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  return batches_ > 0 ? progress_line(at_, epochs_, seconds, batches_, samples_)
                      : fmt::format("epoch {}/{}  its first batches run, for {} by now", at_.epoch + 1, epochs_,
                                    seconds_text(seconds));
}

void TrainingScreen::batch_done(const lamina::Progress& at) {
  const std::lock_guard lock(mutex_);
  at_ = at;
  if (++batches_ == 0)
    begun_ = Clock::now();
  else
    samples_ += at.samples;
}

}  // namespace lamina::bench
