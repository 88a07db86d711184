// What becomes of finished rows.

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <string_view>

#include "bench/io/text.h"
#include "entries.h"
#include "lib/tuning/statistics.h"

namespace lamina::bench {
namespace {

/// What a row says of itself, and the median of the clocks that its device reported.
std::string with_clock(const std::string& note, const std::vector<Sample>& samples) {
  std::vector<double> mhz;
  for (const Sample& sample : samples)
    if (sample.state.sm_mhz) mhz.push_back(*sample.state.sm_mhz);
  if (mhz.empty()) return note;
  return fmt::format("{}{}{:.0f} MHz", note, note.empty() ? "" : ", ", median_interval(mhz).middle);
}

std::string number(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : ""; }

/// The table of the published form.
TextTable published_form() {
  return {{{"network", false, 13},
           {"backend", false, 35},
           {"forward ms", true, 10},
           {"backward ms", true, 11},
           {"total ms", true, 10},
           {"+- ms", true, 8},
           {"images/s", true, 8},
           {"MiB", true, 8},
           {"note"}}};
}

void print_by(benchmark::BenchmarkReporter& by, bool same_counters, Run run, const Row& row, const Outcome& outcome) {
  constexpr std::array shown = {"images_per_second", "flops_per_second", "share_of_peak"};
  const std::vector<Sample>& samples = outcome.samples[row.part];
  if (!samples.empty()) {
    if (run.iterations == 0) return;  // which would look like a time of 0; standard error has it
    run.report_label = with_clock(outcome.note, samples);
    for (const auto& [name, value] : counters_of(row, outcome, samples.front()))
      if (std::ranges::find(shown, name) == shown.end()) run.counters.erase(name);
  }
  if (same_counters)
    for (const char* name : shown) run.counters.try_emplace(name, std::nan(""));
  by.ReportRuns({run});
}

}  // namespace

bool Report::ReportContext(const Context& context) {
  if (begin_) begin_(context);
  begin_ = {};  // the library begins anew for each group of rows that it runs
  return true;
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  clear_step();
  bool failed = false;
  for (Run run : runs) {
    const Row& row = runner_->row_of(run);
    const Outcome& outcome = runner_->outcomes().at(row.group.get());
    const bool aggregate = run.run_type == Run::RT_Aggregate;
    has_passes_ |= !aggregate;
    if (run.counters.erase(lost_counter) > 0 || outcome.samples[row.part].empty()) {
      const std::vector<Sample>& samples = outcome.samples[row.part];
      // Of aggregates alone, an interrupted row keeps the median of the passes that it has.
      if (aggregate && !has_passes_ && run.aggregate_name == "median" && !samples.empty()) {
        run.repetitions = static_cast<std::int64_t>(samples.size());
        const auto whole = static_cast<double>(run.iterations);
        run.real_accumulated_time = whole * median_interval(seconds_of(samples)).middle;
        run.counters = {{cpu_counter, median_interval(cpu_seconds_of(samples)).middle}};
      } else {
        if (aggregate || std::exchange(failed, true) || outcome.failure.empty()) continue;  // no failure: interrupted
        run.iterations = 0;
        run.real_accumulated_time = 0;
      }
    }
    run.run_name = {};
    run.run_name.function_name = row.name;
    run.family_index = &row - runner_->rows().data();
    run.report_label = outcome.note;
    const double cpu = run.counters[cpu_counter];
    run.counters.erase(cpu_counter);
    const bool ratio = aggregate && run.aggregate_unit == benchmark::kPercentage;
    run.cpu_accumulated_time = ratio ? cpu : cpu * static_cast<double>(run.iterations);
    take_(run, row, outcome);
  }
}

Report file_report(const Runner& runner, ResultFile& file) {
  const auto take = [&file](const Run& run, const Row& row, const Outcome& outcome) {
    std::vector<Sample> samples = outcome.samples[row.part];
    const auto index = static_cast<std::size_t>(run.repetition_index);
    if (run.iterations == 0)
      samples.clear();
    else if (run.run_type == Run::RT_Iteration && run.iterations == 1 && index < samples.size())
      samples = {samples[index]};
    file.document["benchmarks"].push_back(entry_of(run, row, outcome, samples));
    file.save_now_and_then();
  };
  return {runner, take, {}};
}

Report text_report(const Runner& runner, benchmark::BenchmarkReporter& by, bool same_counters) {
  const auto begin = [&](benchmark::BenchmarkReporter::Context context) {
    static std::ostream nowhere(nullptr);
    by.SetErrorStream(&nowhere);  // the machine and the build are in the file, by more than the library knows
    context.name_field_width = 0;
    for (const Row& row : runner.rows()) context.name_field_width = std::max(context.name_field_width, row.name.size());
    context.name_field_width += std::string_view("_stddev").size();
    by.ReportContext(context);
  };
  const auto take = [&by, same_counters](const Run& run, const Row& row, const Outcome& outcome) {
    print_by(by, same_counters, run, row, outcome);
  };
  return {runner, take, begin};
}

std::string Table::header() const { return published_form().line(published_form().titles()); }

std::string Table::take(const Row& row, const Outcome& outcome) {
  const Group& group = *row.group;
  if (group.parts.back() != "total" || taken_.contains(&group)) return {};
  const bool complete = row.part + 1 == group.parts.size();
  if (!complete && outcome.failure.empty()) return {};
  taken_.insert(&group);

  const Config& c = group.config;
  std::vector<std::string> cells(9);
  cells[0] = c.network;
  cells[1] = fmt::format("{} {} {} batch {}", c.backend, to_string(c.dtype), to_string(c.layout), c.batch);
  const std::vector<double> total = seconds_of(outcome.samples[2]);
  if (!total.empty()) {
    for (std::size_t part = 0; part < 3; ++part)
      cells[2 + part] = number(1e3 * mean(seconds_of(outcome.samples[part])), 2);
    if (total.size() > 1) cells[5] = fmt::format("{:.2f}", 1e3 * deviation(total));
    cells[6] = number(c.batch / mean(total), 1);
  }
  cells[7] = number(static_cast<double>(outcome.memory.total()) / mebibyte, 0);
  cells[8] = outcome.failure;
  return published_form().line(cells);
}

Report table_report(const Runner& runner) {
  const auto take = [table = std::make_shared<Table>()](const Run&, const Row& row, const Outcome& outcome) {
    std::cout << table->take(row, outcome);
  };
  return {runner, take, [](const auto&) { std::cout << Table().header(); }};
}

}  // namespace lamina::bench
