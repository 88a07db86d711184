// Runs rows under Google Benchmark.

#include "runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "bench/io/interrupt.h"
#include "bench/io/step_line.h"
#include "bench/rows/report/entries.h"
#include "lamina/error.h"
#include "lib/tuning/statistics.h"

namespace lamina::bench {
namespace {

constexpr double longest_settling = 60;  ///< seconds, where --benchmark_min_time gives none

/// What a run of several passes is reported by: mean times, and the state of the device after the last.
Sample mean_of(const std::vector<Sample>& samples) {
  Sample its = samples.back();
  its.seconds = mean(seconds_of(samples));
  its.cpu_seconds = mean(cpu_seconds_of(samples));
  return its;
}

}  // namespace

OpenGroup::OpenGroup(Session& session, const Group& group, Outcome& outcome, MachineWatch& watch, bool with_peak)
    : group_(&group),
      outcome_(&outcome),
      watch_(&watch),
      beside_(session.peaks, group.config.backend, group.config.dtype) {
  watch.begin();
  run_ = [&] {
    const EndsPlanning ends(group.ranks == 1);  // of several, each waits for the others
    return group.open();
  }();
  outcome.memory = run_->memory();
  outcome.bytes = run_->bytes();
  if (with_peak)
    outcome.peak_flops_per_second = session.peaks.of(group.config.backend, group.config.dtype).flops_per_second;
  beside_.begin();
}

void OpenGroup::pass() {
  std::vector<Sample> samples = run_->pass();
  set_moment(samples, beside_.end());
  for (std::size_t part = 0; part < samples.size(); ++part) outcome_->samples[part].push_back(samples[part]);
  outcome_->memory = run_->memory();
  outcome_->counters = run_->counters();
  outcome_->note = run_->note();
  outcome_->algorithm = run_->algorithm();
  watch_->look();
  outcome_->conditions = watch_->conditions();
  if (group_->ranks > 1) outcome_->conditions.others.reset();  // others are the other ranks, too
}

Runner::Runner(Session& session, std::vector<Row> rows, const RunOptions& options, Progress& progress)
    : session_(&session), rows_(std::move(rows)), options_(&options), progress_(&progress) {
  for (const Row& row : rows_) outcomes_.emplace(row.group.get(), row.group->parts.size());
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
  open_.reset();
}

void Runner::run(std::span<const Row> rows, int repetitions, benchmark::BenchmarkReporter& screen,
                 benchmark::BenchmarkReporter& file) {
  benchmark::ClearRegisteredBenchmarks();
  for (const Row& row : rows) {
    auto* const its = benchmark::RegisterBenchmark(
        row.name.c_str(),
        [this, &row, next = std::size_t{0}](benchmark::State& state) mutable { iterate(row, next, state); });
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
  const Outcome& outcome = outcomes_.at(rows.front().group.get());
  const auto is_known = [&](const Row& row) {
    const Interval median = median_interval(seconds_of(outcome.samples[row.part]));
    return (median.high - median.low) / 2 <= options_->noise * median.middle;
  };
  std::size_t passes = 0, next_look = fewest_samples;
  while (passes < most_passes && measure(rows.front(), passes++) && Clock::now() < end) {
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

void Runner::iterate(const Row& row, std::size_t& next, benchmark::State& state) {
  const Outcome& outcome = outcomes_.at(row.group.get());
  const std::vector<Sample>& samples = outcome.samples[row.part];
  const auto wanted = static_cast<std::size_t>(state.max_iterations);
  std::vector<Sample> its;
  while (its.size() < wanted && measure(row, next)) its.push_back(samples[next++]);
  if (samples.empty()) {
    std::string& before = refused_[row.group->config.backend];  // a backend that cannot run says so once
    const bool again = outcome.kind == Failure::unsupported && outcome.failure == before;
    if (outcome.kind == Failure::unsupported) before = outcome.failure;
    state.SkipWithError(again ? "Unsupported, as above" : outcome.failure.c_str());
    return;
  }
  // The library must not know that a row failed after its first passes (1.7 ends the process): the report does.
  const bool lost = its.size() < wanted;
  auto sample = its.begin();
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(lost ? options_->min_time : (sample++)->seconds);
  if (lost) {
    state.counters[lost_counter] = 1;
    return;
  }
  const Sample mean = mean_of(its);
  for (const auto& [name, value] : counters_of(row, outcome, mean)) state.counters[name] = value;
  state.counters[cpu_counter] = mean.cpu_seconds;
}

bool Runner::stops() const {
  int signal = interrupted();
  if (session_->ranks != nullptr) session_->ranks->broadcast(&signal, sizeof signal);
  return signal != 0;
}

bool Runner::measure(const Row& row, std::size_t index) {
  const Group& group = *row.group;
  Outcome& outcome = outcomes_.at(&group);
  const std::string& backend = group.config.backend;
  const bool counted = options_->noise == 0 && options_->min_time == 0;
  const int passes = counted ? passes_on(backend, options_->passes) : 0;
  if (outcome.samples[row.part].size() > index) return true;
  if (!outcome.failure.empty() || stops()) return false;
  try {
    if (const auto lost = lost_.find(backend); lost != lost_.end())
      throw DeviceError(fmt::format("the device of {} failed before: {}", backend, lost->second));
    if (!open_ || !open_->is_of(group)) {
      progress_->show(row, 0, passes);
      open_.reset();  // two plans at once may not fit
      open_.emplace(*session_, group, outcome, watch_, true);
      progress_->pass_done(group);
      if (stops()) return false;
    }
    progress_->show(row, static_cast<int>(index) + 1, passes);
    open_->pass();
    if (!options_->trace.empty()) lanes_.add(*session_->ranks, to_string(group.config), open_->spans());
    progress_->pass_done(group);
    return true;
  } catch (const Interrupted&) {
    return false;
  } catch (const std::exception& error) {
    set_failure(outcome, error);
    if (group.ranks > 1 && outcome.kind != Failure::unsupported) throw;  // the others wait for this one
    open_.reset();
    progress_->group_failed(group, passes + 1 - static_cast<int>(index));
    if (index > 0) fmt::print(stderr, "lamina_bench: {}: {}\n", group.title, outcome.failure);
    const bool device_failed =
        dynamic_cast<const DeviceError*>(&error) != nullptr && dynamic_cast<const OutOfMemory*>(&error) == nullptr;
    if (!device_failed || lost_.contains(backend)) return false;
    try {
      session_->backends.at(backend).device().synchronize();
    } catch (const std::exception& again) {
      lost_[backend] = again.what();
    }
    return false;
  }
}

const Row& Runner::row_of(const Run& run) const { return rows_[first_ + static_cast<std::size_t>(run.family_index)]; }

bool Runner::any_failed() const {
  return std::any_of(outcomes_.begin(), outcomes_.end(), [](const auto& each) {
    return !each.second.failure.empty() && each.second.kind != Failure::unsupported;
  });
}

bool Runner::any_measured() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const Row& row) { return !outcomes_.at(row.group.get()).samples[row.part].empty(); });
}

}  // namespace lamina::bench
