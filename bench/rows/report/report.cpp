// What becomes of finished rows.

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "entries.h"
#include "lib/tune/statistics.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

double summary(const std::string& name, const std::vector<double>& x) {
  if (name == "mean") return mean(x);
  if (name == "median") return median_interval(x).middle;
  if (name == "stddev") return deviation(x);
  return mean(x) > 0 ? deviation(x) / mean(x) : 0;
}

/// What the library computed from the passes of a row, under the row's own name: the library would append
/// "/iterations:1/repeats:3/manual_time". It cannot know the time that the processors spent.
Json aggregate_entry(const benchmark::BenchmarkReporter::Run& run, const Row& row, const Outcome& outcome) {
  const std::vector<Sample>& samples = outcome.samples[row.part];
  const bool ratio = run.aggregate_unit == benchmark::kPercentage;
  Json entry = {{"name", row.name + "_" + run.aggregate_name},
                {"family_index", run.family_index},
                {"per_family_instance_index", run.per_family_instance_index},
                {"run_name", row.name},
                {"run_type", "aggregate"},
                {"repetitions", run.repetitions},
                {"threads", run.threads},
                {"aggregate_name", run.aggregate_name},
                {"aggregate_unit", ratio ? "percentage" : "time"}};
  const auto number = [&](const std::string& name, double value) {
    if (std::isfinite(value)) entry[name] = value;  // JSON has no NaN, as the variation of zeros is
  };
  const double cpu = summary(run.aggregate_name, cpu_seconds_of(samples));
  entry["iterations"] = run.iterations;
  entry["real_time"] = 0.0;
  number("real_time", ratio ? run.real_accumulated_time : run.GetAdjustedRealTime());
  entry["cpu_time"] = ratio ? cpu : cpu * unit_of(row).per_second;
  entry["time_unit"] = unit_of(row).name;
  for (const auto& [name, counter] : run.counters) number(name, counter.value);
  add_facts(entry, row, outcome, samples);
  return entry;
}

/// What a row says of itself, and the median of the clocks that its device reported.
std::string with_clock(const std::string& note, const std::vector<Sample>& samples) {
  std::vector<double> mhz;
  for (const Sample& sample : samples)
    if (sample.state.sm_mhz) mhz.push_back(*sample.state.sm_mhz);
  if (mhz.empty()) return note;
  return fmt::format("{}{}{:.0f} MHz", note, note.empty() ? "" : ", ", median_interval(mhz).middle);
}

}  // namespace

Report::Report(const Runner& runner, ResultFile& file, Screen screen, Table* table, Progress& progress)
    : runner_(&runner), file_(&file), screen_(screen), table_(table), progress_(&progress) {
  for (const Row& row : runner.rows()) name_width_ = std::max(name_width_, row.name.size());
}

bool Report::ReportContext(const Context&) {
  if (screen_ == Screen::console && table_ == nullptr)
    fmt::print("{:<{}} {:>12} {:>10} {:>11} {:>10} {:>7}\n", "row", name_width_, "median ms", "+- ms", "images/s",
               "GFLOP/s", "of peak");
  if (table_ != nullptr && screen_ == Screen::console) fmt::print("{}", table_->header());
  std::fflush(stdout);
  return true;
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  if (runs.empty()) return;
  // They were registered in this order.
  const Row& row = runner_->rows()[static_cast<std::size_t>(runs.front().family_index)];
  const Outcome& outcome = runner_->outcomes().at(row.group.get());
  const auto measured = static_cast<std::int64_t>(outcome.samples[row.part].size());
  const bool failed = !outcome.failure.empty();
  if (measured == 0 && !failed) return;  // interrupted before

  for (const Run& run : runs) {
    const bool aggregate = run.run_type == Run::RT_Aggregate;
    // Aggregates would count passes that never were. Each pass after the first failure fails alike.
    const bool kept = aggregate ? measured >= run.repetitions : run.repetition_index < measured + (failed ? 1 : 0);
    if (!kept) continue;
    file_->document["benchmarks"].push_back(
        aggregate ? aggregate_entry(run, row, outcome)
                  : pass_entry(row, outcome, static_cast<std::size_t>(run.repetition_index), run.family_index,
                               static_cast<int>(run.repetitions)));
  }
  file_->save_now_and_then();
  progress_->clear();
  // The library reports the passes, and then what it computed from them.
  if (runs.front().run_type == Run::RT_Iteration) show(row, outcome);
}

void Report::show(const Row& row, const Outcome& outcome) {
  if (screen_ == Screen::json) return;
  if (table_ != nullptr) {
    fmt::print("{}", table_->take(row, outcome));
    std::fflush(stdout);
    return;
  }
  const std::vector<double> seconds = seconds_of(outcome.samples[row.part]);
  if (!outcome.failure.empty() || seconds.empty()) {
    std::string& before = refused_[row.group->config.backend];  // a backend that cannot run says so once
    const bool again = outcome.kind == Failure::unsupported && outcome.failure == before;
    fmt::print("{:<{}} {}\n", row.name, name_width_, again ? "Unsupported, as above" : outcome.failure);
    if (outcome.kind == Failure::unsupported) before = outcome.failure;
  } else {
    const double middle = median_interval(seconds).middle;
    const std::string note = with_clock(outcome.note, outcome.samples[row.part]);
    const Work work = outcome.work.value_or(row.work());
    std::vector<double> shares;
    for (const Sample& sample : outcome.samples[row.part])
      if (const double peak = peak_beside(outcome, sample); peak > 0)
        shares.push_back(work.flops / sample.seconds / peak);
    const auto or_blank = [](double value, const char* format) {
      return value > 0 && std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string();
    };
    fmt::print("{:<{}} {:>12.3f} {:>10.3f} {:>11} {:>10} {:>7}{}{}\n", row.name, name_width_, 1e3 * middle,
               1e3 * deviation(seconds), or_blank(work.images / middle, "{:.1f}"),
               or_blank(1e-9 * work.flops / middle, "{:.1f}"),
               or_blank(shares.empty() ? 0 : 100 * median_interval(shares).middle, "{:.0f} %"),
               note.empty() ? "" : "  ", note);
  }
  std::fflush(stdout);
}

}  // namespace lamina::bench
