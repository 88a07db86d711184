// Runs rows under Google Benchmark.

#include "runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "io/interrupt.h"
#include "io/quantities.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// The kind of an error, for the text of its row.
std::string text_of(const std::exception& error) {
  const auto is = [&]<class Kind>(Kind*) { return dynamic_cast<const Kind*>(&error) != nullptr; };
  const char* kind = is(static_cast<Unsupported*>(nullptr))      ? "Unsupported"
                     : is(static_cast<OutOfMemory*>(nullptr))    ? "OutOfMemory"
                     : is(static_cast<DeviceError*>(nullptr))    ? "DeviceError"
                     : is(static_cast<ShapeError*>(nullptr))     ? "ShapeError"
                     : is(static_cast<LoadError*>(nullptr))      ? "LoadError"
                     : is(static_cast<FileError*>(nullptr))      ? "FileError"
                     : is(static_cast<UsageError*>(nullptr))     ? "UsageError"
                     : is(static_cast<std::bad_alloc*>(nullptr)) ? "OutOfMemory on the host"
                                                                 : "Error";
  return fmt::format("{}: {}", kind, error.what());
}

}  // namespace

Runner::Runner(Workshop& workshop, std::vector<Row> rows, Progress& progress)
    : workshop_(&workshop), rows_(std::move(rows)), progress_(&progress) {}

void Runner::run(benchmark::BenchmarkReporter& reporter) {
  for (const Row& row : rows_) {
    auto index = std::make_shared<std::size_t>(0);
    benchmark::RegisterBenchmark(row.name.c_str(),
                                 [this, &row, index](benchmark::State& state) { repetition(row, (*index)++, state); })
        ->Iterations(1)
        ->Repetitions(workshop_->passes(row.group->facts.backend))
        ->UseManualTime()
        ->Unit(row.group->layers > 0 ? benchmark::kMicrosecond : benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks(&reporter, nullptr, "all");
  measurement_.reset();
  open_ = nullptr;
}

void Runner::repetition(const Row& row, std::size_t index, benchmark::State& state) {
  measure(row, index);
  Group& group = *row.group;
  const std::vector<Sample>& samples = group.samples[row.part];
  const bool failed_later = index >= samples.size() && !samples.empty();
  if (failed_later) {
    // Some passes failed and others did not, which the library cannot take (1.7 ends the process). The report knows.
    for ([[maybe_unused]] auto _ : state) state.SetIterationTime(0);
    return;
  }
  if (index >= samples.size()) {
    state.SkipWithError(group.failure.empty() ? "interrupted" : group.failure.c_str());
    return;
  }
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(samples[index].seconds);
  count(row, samples[index], state);
}

void Runner::measure(const Row& row, std::size_t index) {
  Group& group = *row.group;
  const std::string& backend = group.facts.backend;
  const int passes = workshop_->passes(backend);
  if (group.samples[row.part].size() > index || !group.failure.empty() || interrupted() != 0) return;
  try {
    if (const auto lost = lost_.find(backend); lost != lost_.end())
      throw DeviceError(fmt::format("the device of {} failed before: {}", backend, lost->second));
    if (open_ != &group) {
      progress_->show(row, 0, passes);
      measurement_.reset();  // two plans at once may not fit
      open_ = nullptr;
      measurement_ = group.open();
      open_ = &group;
      group.memory = measurement_->memory();
      const std::vector<double> bytes = measurement_->bytes();
      for (std::size_t part = 0; part < bytes.size(); ++part) group.work[part].bytes = bytes[part];
      if (!group.first_calls) group.peak_flops = workshop_->peak_flops(backend, group.facts.dtype);
      progress_->pass_done(group);
      if (interrupted() != 0) return;
    }
    progress_->show(row, static_cast<int>(index) + 1, passes);
    const std::vector<Sample> pass = measurement_->pass();
    for (std::size_t part = 0; part < pass.size(); ++part) group.samples[part].push_back(pass[part]);
    group.memory = measurement_->memory();
    group.counters = measurement_->counters();
    group.note = measurement_->note();
    group.algorithm = measurement_->algorithm();
    progress_->pass_done(group);
  } catch (const std::exception& error) {
    group.failure = text_of(error);
    group.unsupported = dynamic_cast<const Unsupported*>(&error) != nullptr;
    measurement_.reset();
    open_ = nullptr;
    progress_->group_failed(group, passes + 1 - static_cast<int>(index));
    const bool device_failed =
        dynamic_cast<const DeviceError*>(&error) != nullptr && dynamic_cast<const OutOfMemory*>(&error) == nullptr;
    if (!device_failed || lost_.contains(backend)) return;
    try {
      workshop_->backend(backend).device().synchronize();
    } catch (const std::exception& again) {
      lost_[backend] = again.what();
    }
  }
}

void Runner::count(const Row& row, const Sample& sample, benchmark::State& state) {
  const Group& group = *row.group;
  const Work& work = group.work[row.part];
  const auto rate = [&](const char* name, double amount) {
    if (amount > 0 && sample.seconds > 0) state.counters[name] = amount / sample.seconds;
  };
  rate("images_per_second", work.images);
  rate("flops_per_second", work.flops);
  rate("bytes_per_second", work.bytes);
  if (group.peak_flops > 0) rate("share_of_peak", work.flops / group.peak_flops);
  state.counters["arena_MiB"] = static_cast<double>(group.memory.arena) / mebibyte;
  state.counters["workspace_MiB"] = static_cast<double>(group.memory.workspace) / mebibyte;
  state.counters["plan_MiB"] = static_cast<double>(group.memory.total()) / mebibyte;
  if (group.layers > 0) state.counters["layers"] = group.layers;
  const auto reading = [&](const char* name, const std::optional<double>& value) {
    if (value) state.counters[name] = *value;
  };
  reading("sm_mhz", sample.state.sm_mhz);
  reading("temperature_c", sample.state.temperature_c);
  reading("power_w", sample.state.power_w);
  for (const auto& [name, value] : group.counters) state.counters[name] = value;
}

bool Runner::any_failed() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [](const Row& row) { return !row.group->failure.empty() && !row.group->unsupported; });
}

bool Runner::any_measured() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.group->samples[row.part].empty(); });
}

}  // namespace lamina::bench
