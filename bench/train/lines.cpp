// What is printed of trainings.

#include "lines.h"

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

std::string epoch_line(const EpochResult& e, int epochs, const std::string& data_note) {
  std::string line = fmt::format("epoch {}/{}  {:.2f} s  loss {:.4f}  accuracy {:.4f}", e.epoch + 1, epochs, e.seconds,
                                 e.training.loss, e.training.accuracy);
  if (!std::isnan(e.validation.loss))
    line += fmt::format("  validation loss {:.4f}  accuracy {:.4f}", e.validation.loss, e.validation.accuracy);
  return line + data_note + "\n";
}

std::string summary(const TrainOptions& options, const std::vector<EpochResult>& epochs, const std::string& data_note) {
  double seconds = 0;
  for (const EpochResult& e : epochs) seconds += e.seconds;
  std::string text =
      fmt::format("{} epoch{}: {:.2f} s{}; the first {:.2f} s", epochs.size(), epochs.size() == 1 ? "" : "s", seconds,
                  cost_text(seconds, options.usd_per_hour), epochs.front().seconds);
  if (epochs.size() > 1)
    text += fmt::format(", each later one {:.2f} s in the mean",
                        (seconds - epochs.front().seconds) / static_cast<double>(epochs.size() - 1));
  text += data_note + "\n";
  if (options.target > 0) {
    const double reached = seconds_to(epochs, options.target);
    text += reached < 0 ? fmt::format("accuracy {} was not reached{}\n", options.target, data_note)
                        : fmt::format("to accuracy {}: {:.2f} s{}{}\n", options.target, reached,
                                      cost_text(reached, options.usd_per_hour), data_note);
  }
  return text;
}

std::string stopped_line(const TrainOptions& options, std::size_t done, int epochs, const std::string& data_note) {
  std::string how = "; without --checkpoint the next run begins anew";
  if (!options.checkpoint.empty())
    how = done == 0 && !std::filesystem::exists(options.checkpoint)
              ? "; the first checkpoint is written after the first epoch, or by --checkpoint_updates"
              : "; the same command goes on from " + options.checkpoint.string();
  return fmt::format("stopped after {} of {} epochs{}{}\n", done, epochs, how, data_note);
}

TextTable trained_table(const std::vector<Trained>& all) {
  TextTable table;
  table.columns = {{"training"},         {"seed", true},      {"epochs", true}, {"first s", true},
                   {"later s", true},    {"samples/s", true}, {"loss", true},   {"accuracy", true},
                   {"validation", true}, {"best", true},      {"data"}};
  const auto number = [](double value, const char* format) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string();
  };
  for (const Trained& one : all) {
    if (one.epochs.empty()) continue;
    double seconds = 0, training_seconds = 0;
    for (const EpochResult& e : one.epochs) {
      seconds += e.seconds;
      training_seconds += e.seconds - e.validation_seconds;
    }
    const EpochResult& first = one.epochs.front();
    const EpochResult& last = one.epochs.back();
    const auto count = static_cast<double>(one.epochs.size());
    table.rows.push_back({one.name, fmt::format("{}", one.seed), fmt::format("{}", one.epochs.size()),
                          number(first.seconds, "{:.2f}"),
                          one.epochs.size() > 1 ? number((seconds - first.seconds) / (count - 1), "{:.2f}") : "",
                          number(static_cast<double>(one.samples) * count / training_seconds, "{:.0f}"),
                          number(last.training.loss, "{:.4f}"), number(last.training.accuracy, "{:.4f}"),
                          number(last.validation.accuracy, "{:.4f}"),
                          one.optimum ? number(one.optimum->accuracy, "{:.4f}") : "", one.data});
  }
  return table;
}

}  // namespace lamina::bench
