// What a training costs.

#include "cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "lamina/error.h"
#include "lib/support/near.h"
#include "published_trainings.h"

namespace lamina::bench {
namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all(1);
  for (const char c : line) {
    if (c == ',')
      all.emplace_back();
    else if (c != '\r')
      all.back() += c;
  }
  return all;
}

/// Negative for what is not a number.
double number(const std::string& text) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

Price price_of(const std::filesystem::path& path, const std::string& configuration) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("source,date,configuration,usd_per_hour"))
    throw FileError(path.string() +
                    ": not a file of prices: its first line is not source,date,configuration,usd_per_hour,note");
  Price newest;
  std::vector<std::string> known;
  while (std::getline(file, line)) {
    const auto cell = cells(line);
    if (cell == std::vector<std::string>{""}) continue;
    const double price = cell.size() < 4 ? -1 : number(cell[3]);
    if (!(price >= 0 && std::isfinite(price)))
      throw FileError(fmt::format("{}: a line has no price: \"{}\"", path.string(), line));
    if (std::ranges::find(known, cell[2]) == known.end()) known.push_back(cell[2]);
    if (cell[2] == configuration && cell[1] >= newest.date) newest = {cell[1], cell[2], price};
  }
  if (newest.date.empty())
    throw UsageError(fmt::format("{} has no configuration \"{}\"; {}", path.string(), configuration,
                                 near_names(configuration, known)));
  return newest;
}

double usd(double seconds, double usd_per_hour) { return seconds / 3600 * usd_per_hour; }

std::string cost_text(double seconds, const Price& price) {
  if (!(price.usd_per_hour > 0)) return {};
  const double value = usd(seconds, price.usd_per_hour);
  const int digits = value > 0 ? std::max(4, 1 - static_cast<int>(std::floor(std::log10(value)))) : 4;
  return fmt::format(", {:.{}f} USD at {} USD/h{}", value, digits, price.usd_per_hour,
                     price.date.empty() ? "" : " of " + price.date);
}

const std::vector<Platform>& platforms() {
  // Prices of 2017-11: the GPU and an n1-standard-1; processors preemptible.
  static const std::vector<Platform> all = {{"k80", "K80, TensorFlow 1.4", .450 + .0475},
                                            {"p100", "P100, TensorFlow 1.4", 1.460 + .0475},
                                            {"cpu32", "32 vCPU, TensorFlow 1.4", .240},
                                            {"cpu16", "16 vCPU, TensorFlow 1.4", .120}};
  return all;
}

std::vector<double> published_epochs(std::string_view workload, std::string_view platform) {
  std::vector<double> seconds;
  std::istringstream lines(published_trainings);
  for (std::string line; std::getline(lines, line);)
    if (const auto cell = cells(line); cell.size() >= 4 && cell[0] == workload && cell[1] == platform)
      seconds.push_back(number(cell[3]));
  if (seconds.empty()) throw UsageError(fmt::format("no published training {} on {}", workload, platform));
  return seconds;
}

namespace {

double total(std::string_view workload, const Platform& platform) {
  double sum = 0;
  for (const double seconds : published_epochs(workload, platform.name)) sum += seconds;
  return sum;
}

}  // namespace

Relative relative(std::string_view workload, const Platform& platform) {
  const Platform& base = platforms().front();
  const double time = total(workload, platform) / total(workload, base);
  return {time, time * platform.usd_per_hour / base.usd_per_hour};
}

TextTable published_table(std::string_view workload) {
  TextTable table;
  const std::size_t epochs = published_epochs(workload, platforms().front().name).size();
  table.columns = {
      {fmt::format("{} epochs, published 2017-11", epochs)}, {"seconds", true}, {"USD/h", true}, {"USD", true}};
  for (const Platform& platform : platforms()) {
    const double seconds = total(workload, platform);
    table.rows.push_back({std::string(platform.title), fmt::format("{:.1f}", seconds),
                          fmt::format("{:.4f}", platform.usd_per_hour),
                          fmt::format("{:.4f}", usd(seconds, platform.usd_per_hour))});
  }
  return table;
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
