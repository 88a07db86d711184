// Runs rows under Google Benchmark.

#include "runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/io/interrupt.h"
#include "bench/io/text.h"
#include "entries.h"
#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

constexpr double longest_settling = 60;  ///< seconds, where --benchmark_min_time gives none

}  // namespace

Runner::Runner(Session& session, std::vector<Row> rows, const RunOptions& options, Watcher& watcher)
    : rows_(std::move(rows)), options_(&options), meter_(session, options, watcher) {
  for (const Row& row : rows_) meter_.outcome(row);
}

void Runner::run(benchmark::BenchmarkReporter& screen, benchmark::BenchmarkReporter& file) {
  const std::span<const Row> all = rows_;
  if (options_->noise == 0) run(all, 0, screen, file);
  while (options_->noise > 0 && first_ < all.size()) {  // the library wants to know the number of passes beforehand
    const auto other = [&](const Row& row) { return row.group != all[first_].group; };
    const auto end = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first_), all.end(), other);
    const auto its = all.subspan(first_, static_cast<std::size_t>(end - all.begin()) - first_);
    run(its, settle(its), screen, file);
    first_ += its.size();
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
  using Clock = std::chrono::steady_clock;
  const double seconds = options_->min_time > 0 ? options_->min_time : longest_settling;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const Outcome& outcome = meter_.outcome(rows.front());
  const auto is_known = [&](const Row& row) {
    const Interval median = median_interval(seconds_of(outcome.samples[row.part]));
    return (median.high - median.low) / 2 <= options_->noise * median.middle;
  };
  std::size_t passes = 0, next_look = fewest_samples;
  while (passes < most_passes && meter_.measure(rows.front(), passes++) && Clock::now() < end) {
    if (passes < next_look) continue;
    if (std::ranges::all_of(rows, is_known)) break;
    next_look = passes + 1 + passes / 16;  // each look sorts all samples
  }
  if (interrupted() == 0 && outcome.failure.empty() && !std::ranges::all_of(rows, is_known)) {
    clear_step();
    fmt::print(stderr, "{}: not known to {:g} % after {} passes; a longer --benchmark_min_time gives it more\n",
               rows.front().group->title, 100 * options_->noise, passes);
  }
  return static_cast<int>(passes);
}

void Runner::iterate(const Row& row, benchmark::State& state) {
  const Outcome& outcome = meter_.outcome(row);
  const std::vector<Sample>& samples = outcome.samples[row.part];
  auto& [next, runs] = taken_[&row];
  const std::size_t first = next, wanted = static_cast<std::size_t>(state.max_iterations);
  while (next < first + wanted && meter_.measure(row, next)) ++next;
  const bool lost = next < first + wanted;
  runs.emplace_back(first, lost ? 0 : wanted);
  if (samples.empty()) {
    std::string& before = refused_[row.group->config.backend];  // a backend that cannot run says so once
    const bool again = outcome.kind == Failure::unsupported && outcome.failure == before;
    if (outcome.kind == Failure::unsupported) before = outcome.failure;
    state.SkipWithError(again ? "Unsupported, as above" : outcome.failure.c_str());
    return;
  }
  // The library must not know that a row failed after its first passes (1.7 ends the process): the report does.
  std::size_t at = first;
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(lost ? options_->min_time : samples[at++].seconds);
}

Runs Runner::runs_of(const benchmark::BenchmarkReporter::Run& run) const {
  const Row& row = row_of(run);
  const auto& samples = outcomes().at(row.group.get()).samples[row.part];
  // Before its last runs the library tried how many passes a run should have.
  auto its = std::span(taken_.at(&row).runs).last(static_cast<std::size_t>(run.repetitions));
  if (run.run_type == benchmark::BenchmarkReporter::Run::RT_Iteration)
    its = its.subspan(static_cast<std::size_t>(run.repetition_index), 1);
  Runs whole;
  for (const auto& [first, count] : its)
    if (count > 0) whole.push_back(std::span(samples).subspan(first, count));
  return whole;
}

const Row& Runner::row_of(const benchmark::BenchmarkReporter::Run& run) const {
  return rows_[first_ + static_cast<std::size_t>(run.family_index)];
}

bool Runner::any_failed() const {
  return std::ranges::any_of(outcomes(), [](const auto& each) {
    return !each.second.failure.empty() && each.second.kind != Failure::unsupported;
  });
}

bool Runner::any_measured() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const Row& row) { return !outcomes().at(row.group.get()).samples[row.part].empty(); });
}

}  // namespace lamina::bench
