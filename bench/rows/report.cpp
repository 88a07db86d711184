// What becomes of finished rows.

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "tune/statistics.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

double summary(const std::string& name, const std::vector<double>& x) {
  if (name == "mean") return mean(x);
  if (name == "median") return median_interval(x).middle;
  if (name == "stddev") return deviation(x);
  return mean(x) > 0 ? deviation(x) / mean(x) : 0;
}

/// What a row is of, as fields.
Json fields_of(const RowKey& key) {
  Json fields = {{"what", key.what}, {"network", key.network}};
  if (!key.layer.empty()) fields["layer"] = key.layer;
  fields["part"] = key.part;
  fields["backend"] = key.backend;
  if (!key.algorithm.empty()) fields["algorithm"] = key.algorithm;
  fields["type"] = key.type;
  fields["layout"] = key.layout;
  fields["batch"] = key.batch;
  for (const auto& [what, value] : key.differs) fields["differs"][what] = value;
  return fields;
}

/// A run of a row as Google Benchmark writes it, under the row's own name: the library would append
/// "/iterations:1/repeats:3/manual_time". Beside it stand the time that the processors spent in the samples, which the
/// library cannot know, and what the row and its measurement are.
Json fields_of(const benchmark::BenchmarkReporter::Run& run, const Row& row, const Outcome& outcome) {
  std::vector<Sample> samples = outcome.samples[row.part];  // that the run is about: all of them, or its own
  const bool aggregate = run.run_type == run.RT_Aggregate;
  Json fields = {{"name", aggregate ? row.name + "_" + run.aggregate_name : row.name},
                 {"family_index", run.family_index},
                 {"per_family_instance_index", run.per_family_instance_index},
                 {"run_name", row.name},
                 {"run_type", aggregate ? "aggregate" : "iteration"},
                 {"repetitions", run.repetitions}};
  if (!aggregate) fields["repetition_index"] = run.repetition_index;
  fields["threads"] = run.threads;
  const bool ratio = run.aggregate_unit == benchmark::kPercentage;
  if (aggregate) {
    fields["aggregate_name"] = run.aggregate_name;
    fields["aggregate_unit"] = ratio ? "percentage" : "time";
  } else if (const auto index = static_cast<std::size_t>(run.repetition_index); index < samples.size()) {
    samples = {samples[index]};
  } else {
    samples.clear();
    fields["error_occurred"] = true;
    fields["error_message"] = outcome.failure;
  }
  const auto number = [&](const std::string& name, double value) {
    if (std::isfinite(value)) fields[name] = value;  // JSON has no NaN, as the variation of zeros is
  };
  const double cpu = summary(aggregate ? run.aggregate_name : "mean", cpu_seconds_of(samples));
  fields["iterations"] = run.iterations;
  fields["real_time"] = 0.0;
  number("real_time", ratio ? run.real_accumulated_time : run.GetAdjustedRealTime());
  fields["cpu_time"] = ratio ? cpu : cpu * benchmark::GetTimeUnitMultiplier(run.time_unit);
  fields["time_unit"] = benchmark::GetTimeUnitString(run.time_unit);
  for (const auto& [name, counter] : run.counters) number(name, counter.value);
  if (!outcome.note.empty()) fields["label"] = outcome.note;
  fields["key"] = fields_of(row.key);
  if (!outcome.algorithm.empty()) fields["algorithm"] = outcome.algorithm;
  if (const Launches launches = launches_of(samples); launches != Launches::none)
    fields["launches"] = to_string(launches);
  if (const std::string reasons = throttled_of(samples); !reasons.empty()) fields["throttled"] = reasons;
  return fields;
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

bool Report::ReportContext(const Context& context) {
  std::ostringstream text;  // some of it only the library knows
  benchmark::JSONReporter json;
  json.SetOutputStream(&text);
  json.ReportContext(context);  // leaves the list of rows open
  file_->document = Json::parse(text.str() + "]}");
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
    if (kept) file_->document["benchmarks"].push_back(fields_of(run, row, outcome));
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
    const bool again = outcome.unsupported && outcome.failure == before;
    fmt::print("{:<{}} {}\n", row.name, name_width_, again ? "Unsupported, as above" : outcome.failure);
    if (outcome.unsupported) before = outcome.failure;
  } else {
    const double middle = median_interval(seconds).middle;
    const std::string note = with_clock(outcome.note, outcome.samples[row.part]);
    const Work& work = row.work();
    const auto or_blank = [](double value, const char* format) {
      return value > 0 && std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string();
    };
    fmt::print("{:<{}} {:>12.3f} {:>10.3f} {:>11} {:>10} {:>7}{}{}\n", row.name, name_width_, 1e3 * middle,
               1e3 * deviation(seconds), or_blank(work.images / middle, "{:.1f}"),
               or_blank(1e-9 * work.flops / middle, "{:.1f}"),
               or_blank(outcome.peak_flops > 0 ? 100 * work.flops / middle / outcome.peak_flops : 0, "{:.0f} %"),
               note.empty() ? "" : "  ", note);
  }
  std::fflush(stdout);
}

}  // namespace lamina::bench
