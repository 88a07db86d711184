// Runs rows under Google Benchmark.

#include "runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "bench/io/interrupt.h"
#include "bench/rows/report/entries.h"
#include "lamina/error.h"

namespace lamina::bench {

OpenGroup::OpenGroup(Session& session, const Group& group, Outcome& outcome, MachineWatch& watch, bool with_peak)
    : group_(&group),
      outcome_(&outcome),
      watch_(&watch),
      beside_(session.peaks, group.config.backend, group.config.dtype) {
  watch.begin();
  run_ = group.open();
  outcome.memory = run_->memory();
  outcome.bytes = run_->bytes();
  outcome.work = run_->work();
  if (with_peak)
    outcome.peak_flops_per_second = session.peaks.of(group.config.backend, group.config.dtype).flops_per_second;
  if (!group.first_calls) beside_.begin();
}

void OpenGroup::pass() {
  std::vector<Sample> samples = run_->pass();
  if (!group_->first_calls) set_moment(samples, beside_.end());
  for (std::size_t part = 0; part < samples.size(); ++part) outcome_->samples[part].push_back(samples[part]);
  outcome_->memory = run_->memory();
  outcome_->counters = run_->counters();
  outcome_->note = run_->note();
  outcome_->algorithm = run_->algorithm();
  watch_->look();
  outcome_->conditions = watch_->conditions();
}

Runner::Runner(Session& session, std::vector<Row> rows, int passes, Progress& progress)
    : session_(&session), rows_(std::move(rows)), passes_(passes), progress_(&progress) {
  for (const Row& row : rows_) outcomes_.emplace(row.group.get(), row.group->parts.size());
}

void Runner::run(benchmark::BenchmarkReporter& reporter) {
  for (const Row& row : rows_)
    // The library calls the function once for each repetition, and does not say for which.
    benchmark::RegisterBenchmark(
        row.name.c_str(),
        [this, &row, index = std::size_t{0}](benchmark::State& state) mutable { repetition(row, index++, state); })
        ->Iterations(1)
        ->Repetitions(passes_on(row.group->config.backend, passes_))
        ->UseManualTime()
        ->Unit(row.group->layers > 0     ? benchmark::kMicrosecond
               : row.key.what == "train" ? benchmark::kSecond
                                         : benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks(&reporter, nullptr, "all");
  open_.reset();
}

void Runner::repetition(const Row& row, std::size_t index, benchmark::State& state) {
  measure(row, index);
  const Outcome& outcome = outcomes_.at(row.group.get());
  const std::vector<Sample>& samples = outcome.samples[row.part];
  const bool failed_later = index >= samples.size() && !samples.empty();
  if (failed_later) {
    // Some passes failed and others did not, which the library cannot take (1.7 ends the process). The report knows.
    for ([[maybe_unused]] auto _ : state) state.SetIterationTime(0);
    return;
  }
  if (index >= samples.size()) {
    state.SkipWithError(outcome.failure.empty() ? "interrupted" : outcome.failure.c_str());
    return;
  }
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(samples[index].seconds);
  for (const auto& [name, value] : counters_of(row, outcome, samples[index])) state.counters[name] = value;
}

void Runner::measure(const Row& row, std::size_t index) {
  const Group& group = *row.group;
  Outcome& outcome = outcomes_.at(&group);
  const std::string& backend = group.config.backend;
  const int passes = passes_on(backend, passes_);
  if (outcome.samples[row.part].size() > index || !outcome.failure.empty() || interrupted() != 0) return;
  try {
    if (const auto lost = lost_.find(backend); lost != lost_.end())
      throw DeviceError(fmt::format("the device of {} failed before: {}", backend, lost->second));
    if (!open_ || !open_->is_of(group)) {
      progress_->show(row, 0, passes);
      open_.reset();  // two plans at once may not fit
      open_.emplace(*session_, group, outcome, watch_, !group.first_calls);
      progress_->pass_done(group);
      if (interrupted() != 0) return;
    }
    progress_->show(row, static_cast<int>(index) + 1, passes);
    open_->pass();
    progress_->pass_done(group);
  } catch (const std::exception& error) {
    set_failure(outcome, error);
    open_.reset();
    progress_->group_failed(group, passes + 1 - static_cast<int>(index));
    const bool device_failed =
        dynamic_cast<const DeviceError*>(&error) != nullptr && dynamic_cast<const OutOfMemory*>(&error) == nullptr;
    if (!device_failed || lost_.contains(backend)) return;
    try {
      session_->backends.at(backend).device().synchronize();
    } catch (const std::exception& again) {
      lost_[backend] = again.what();
    }
  }
}

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
