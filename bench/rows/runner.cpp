// Runs rows with Google Benchmark, and prints them.

#include "runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>
#include <utility>

#include "bench/io/interrupt.h"
#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

constexpr double longest_settling = 60;  ///< most seconds of --noise without --benchmark_min_time

using Run = benchmark::BenchmarkReporter::Run;

/// The note of a row with the median of the clocks that the device reported.
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
  return {{{"network", 13},
           {"backend", 35},
           {">forward ms", 10},
           {">backward ms", 11},
           {">total ms", 10},
           {">+- ms", 8},
           {">images/s", 8},
           {">MiB", 8},
           "note"}};
}

/// Prints a run under the row's name. The library's own name of the run ends in "/iterations:1/repeats:3/manual_time".
void print_by(benchmark::BenchmarkReporter& by, bool same_counters, Run run, const Row& row, const Outcome& outcome,
              const Runs& runs) {
  constexpr std::array shown = {"images_per_second", "flops_per_second", "share_of_peak"};
  const std::vector<Sample>& samples = outcome.samples[row.part];
  if (runs.empty() && !samples.empty()) return;  // a failure would look like a time of 0; stderr reports it
  run.run_name = {};
  run.run_name.function_name = row.name;
  run.report_label = samples.empty() ? outcome.note : with_clock(outcome.note, samples);
  if (runs.empty()) {
    run.iterations = 0;
    run.real_accumulated_time = run.cpu_accumulated_time = 0;
  } else {
    const Figures figures = figures_of(row, outcome, runs, run.aggregate_name);
    const bool is_share = run.aggregate_unit == benchmark::kPercentage;
    const double iterations = is_share ? 1 : static_cast<double>(run.iterations);
    run.real_accumulated_time = iterations * figures.at("real_time");
    run.cpu_accumulated_time = iterations * figures.at("cpu_time");
    for (const char* name : shown)
      if (const auto its = figures.find(name); its != figures.end()) run.counters[name] = its->second;
  }
  if (same_counters)
    for (const char* name : shown) run.counters.try_emplace(name, std::nan(""));
  by.ReportRuns({run});
}

}  // namespace

Runner::Runner(Session& session, std::vector<Row> rows, const RunOptions& options, Progress& progress)
    : rows_(std::move(rows)), options_(&options), meter_(session, options, progress) {
  for (const Row& row : rows_) meter_.outcome(row);
}

void Runner::run(benchmark::BenchmarkReporter& screen, benchmark::BenchmarkReporter& file) {
  std::span<const Row> left = rows_;
  if (options_->noise == 0) run(left, 0, screen, file);
  while (options_->noise > 0 && !left.empty()) {  // the library needs the number of passes beforehand
    const auto other = [&](const Row& row) { return row.group != left.front().group; };
    const std::span its(left.begin(), std::ranges::find_if(left, other));
    run(its, settle(its), screen, file);
    left = left.subspan(its.size());
  }
  meter_.close();
}

void Runner::run(std::span<const Row> rows, int repetitions, benchmark::BenchmarkReporter& screen,
                 benchmark::BenchmarkReporter& file) {
  benchmark::ClearRegisteredBenchmarks();
  for (const Row& row : rows) {
    auto* const its =
        benchmark::RegisterBenchmark(row.name.c_str(), [this, &row](benchmark::State& state) { iterate(row, state); });
    its->UseManualTime()->Repetitions(repetitions > 0 ? repetitions
                                                      : passes_on(row.group->config.backend, options_->passes));
    if (options_->time_unit.empty()) its->Unit(unit_of(row));
    if (options_->noise > 0 || options_->min_time == 0)
      its->Iterations(1);
    else
      its->MinTime(options_->min_time);
  }
  benchmark::RunSpecifiedBenchmarks(&screen, &file, "all");
}

int Runner::settle(std::span<const Row> rows) {
  const double end = steady_seconds() + (options_->min_time > 0 ? options_->min_time : longest_settling);
  const Outcome& outcome = meter_.outcome(rows.front());
  const auto is_known = [&](const Row& row) {
    const Interval median = median_interval(seconds_of(outcome.samples[row.part]));
    return (median.high - median.low) / 2 <= options_->noise * median.middle;
  };
  std::size_t passes = 0, next_look = fewest_samples;
  while (passes < most_passes && meter_.measure(rows.front(), passes++) && steady_seconds() < end) {
    if (passes < next_look) continue;
    if (std::ranges::all_of(rows, is_known)) break;
    next_look = passes + 1 + passes / 16;  // each look sorts all samples
  }
  if (interrupted() == 0 && outcome.failure.empty() && !std::ranges::all_of(rows, is_known)) {
    clear_step();
    fmt::print(stderr, "{}: not known to {:g} % after {} passes; a longer --benchmark_min_time allows more passes\n",
               rows.front().group->title, 100 * options_->noise, passes);
  }
  return static_cast<int>(passes);
}

void Runner::iterate(const Row& row, benchmark::State& state) {
  Outcome& outcome = meter_.outcome(row);
  const std::vector<Sample>& samples = outcome.samples[row.part];
  std::size_t at = outcome.wanted[row.part];
  outcome.last_wanted[row.part] = static_cast<std::size_t>(state.max_iterations);
  const std::size_t end = outcome.wanted[row.part] += outcome.last_wanted[row.part];
  for (std::size_t next = at; next < end && meter_.measure(row, next);) ++next;
  if (samples.empty()) {
    std::string& before = refused_[row.group->config.backend];  // the reason is printed once for each backend
    const bool again = outcome.kind == Failure::unsupported && outcome.failure == before;
    if (outcome.kind == Failure::unsupported) before = outcome.failure;
    state.SkipWithError(again ? "Unsupported, as above" : outcome.failure.c_str());
    return;
  }
  // A row that failed after its first passes is not reported to the library, because version 1.7 would end the process.
  // The report handles such a row.
  const bool lost = samples.size() < end;
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(lost ? options_->min_time : samples[at++].seconds);
}

bool Runner::any_failed() const {
  return std::ranges::any_of(outcomes(), [](const auto& each) {
    return !each.second.failure.empty() && each.second.kind != Failure::unsupported;
  });
}

bool Runner::any_measured() const {
  return std::ranges::any_of(outcomes(), [](const auto& each) { return !each.second.samples.front().empty(); });
}

Report text_report(const Runner& runner, benchmark::BenchmarkReporter& by, bool same_counters) {
  const auto begin = [&](benchmark::BenchmarkReporter::Context context) {
    static std::ostream nowhere(nullptr);
    by.SetErrorStream(&nowhere);  // hides the library's context: the context of our files has more facts
    context.name_field_width = 0;
    for (const Row& row : runner.rows()) context.name_field_width = std::max(context.name_field_width, row.name.size());
    context.name_field_width += std::string_view("_stddev").size();
    by.ReportContext(context);
  };
  const auto take = [&by, same_counters](const Run& run, const Row& row, const Outcome& outcome, const Runs& runs) {
    print_by(by, same_counters, run, row, outcome, runs);
  };
  return {runner.rows(), runner.outcomes(), take, begin};
}

std::string table_line(const Row& row, const Outcome& outcome) {
  if (row.group->parts[row.part] != "total") return {};
  const Config& c = row.group->config;
  const std::vector<double> total = seconds_of(outcome.samples[2]);
  const auto ms = [&](std::size_t part) { return number(1e3 * mean(seconds_of(outcome.samples[part])), 2); };
  return published_form().line(
      {c.network, fmt::format("{} {} {} batch {}", c.backend, to_string(c.dtype), to_string(c.layout), c.batch), ms(0),
       ms(1), ms(2), total.size() > 1 ? fmt::format("{:.2f}", 1e3 * deviation(total)) : "",
       total.empty() ? "" : number(c.batch / mean(total), 1),
       number(static_cast<double>(outcome.memory.total()) / mebibyte, 0), outcome.failure});
}

Report table_report(const Runner& runner) {
  const auto take = [last = static_cast<const Row*>(nullptr)](const Run&, const Row& row, const Outcome& outcome,
                                                              const Runs&) mutable {
    if (std::exchange(last, &row) != &row) std::cout << table_line(row, outcome);  // once for all runs of the row
  };
  return {runner.rows(), runner.outcomes(), take,
          [](const auto&) { std::cout << published_form().line(published_form().titles()); }};
}

}  // namespace lamina::bench
