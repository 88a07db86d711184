// What a training costs.

#include "cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lamina::bench {
std::string cost_text(double seconds, double usd_per_hour) {
  if (!(usd_per_hour > 0)) return {};
  const double value = seconds / 3600 * usd_per_hour;
  const int digits = value > 0 ? std::max(4, 1 - static_cast<int>(std::floor(std::log10(value)))) : 4;
  return fmt::format(", {:.{}f} USD at {} USD/h", value, digits, usd_per_hour);
}

double seconds_to(const std::vector<EpochResult>& epochs, double target_accuracy) {
  double seconds = 0;
  for (const EpochResult& e : epochs) {
    seconds += e.seconds;
    const double accuracy = std::isnan(e.validation.accuracy) ? e.training.accuracy : e.validation.accuracy;
    if (accuracy >= target_accuracy) return seconds;
  }
  return -1;
}

std::string run_csv(const std::vector<EpochResult>& epochs) {
  std::string text = "epoch,elapsed,loss,acc,val_loss,val_acc\n";
  const auto optional = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{}", value); };
  for (const EpochResult& e : epochs)
    text += fmt::format("{},{},{},{},{},{}\n", e.epoch, e.seconds, e.training.loss, e.training.accuracy,
                        optional(e.validation.loss), optional(e.validation.accuracy));
  return text;
}

}  // namespace lamina::bench
