// Rows as entries of a result file.

#include "entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "bench/io/text.h"
#include "bench/timing/grade.h"
#include "lamina/error.h"
#include "lib/core/system/address_limit.h"
#include "lib/core/text/utf8.h"
#include "lib/tuning/statistics.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

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
  return fmt::format("{}: {}{}", kind, error.what(), is(static_cast<std::bad_alloc*>(nullptr)) ? address_limit() : "");
}

void add_failure(Json& entry, const Outcome& outcome) {
  entry["error_occurred"] = true;
  entry["error_message"] = to_utf8(outcome.failure);  // it may have the name of a file
  constexpr const char* kinds[] = {"failed", "unsupported", "out_of_memory"};
  entry["failure"] = kinds[static_cast<std::size_t>(outcome.kind)];
  if (outcome.wanted_bytes > 0) {
    entry["bytes_wanted"] = outcome.wanted_bytes;
    entry["bytes_free"] = outcome.free_bytes;
  }
}

/// What the library's JSON has of a run. JSON has no NaN, as the variation of zeros is.
Json json_of(const Run& run) {
  const bool aggregate = run.run_type == Run::RT_Aggregate;
  const bool is_ratio = aggregate && run.aggregate_unit == benchmark::kPercentage;
  const auto finite = [](double value) { return std::isfinite(value) ? value : 0; };
  Json json = {{"name", run.benchmark_name()},
               {"family_index", run.family_index},
               {"per_family_instance_index", run.per_family_instance_index},
               {"run_name", run.run_name.str()},
               {"run_type", aggregate ? "aggregate" : "iteration"},
               {"repetitions", run.repetitions}};
  if (!aggregate) json["repetition_index"] = run.repetition_index;
  json["threads"] = run.threads;
  if (aggregate) json["aggregate_name"] = run.aggregate_name;
  if (aggregate) json["aggregate_unit"] = is_ratio ? "percentage" : "time";
  json["iterations"] = run.iterations;
  json["real_time"] = finite(is_ratio ? run.real_accumulated_time : run.GetAdjustedRealTime());
  json["cpu_time"] = finite(is_ratio ? run.cpu_accumulated_time : run.GetAdjustedCPUTime());
  json["time_unit"] = benchmark::GetTimeUnitString(run.time_unit);
  for (const auto& [name, counter] : run.counters)
    if (std::isfinite(counter.value)) json[name] = counter.value;
  if (!run.report_label.empty()) json["label"] = run.report_label;
  return json;
}

/// A run that the library did not make.
Run run_of(const Row& row, const Outcome& outcome, std::int64_t row_number, int passes) {
  Run run;
  run.run_name.function_name = row.name;
  run.family_index = row_number;
  run.per_family_instance_index = run.repetition_index = 0;
  run.repetitions = passes;
  run.time_unit = unit_of(row);
  run.report_label = outcome.note;
  return run;
}

}  // namespace

void set_failure(Outcome& outcome, const std::exception& error) {
  outcome.failure = text_of(error);
  if (dynamic_cast<const Unsupported*>(&error) != nullptr) outcome.kind = Failure::unsupported;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) outcome.kind = Failure::out_of_memory;
  if (const auto* memory = dynamic_cast<const OutOfMemory*>(&error)) {
    outcome.kind = Failure::out_of_memory;
    outcome.wanted_bytes = memory->wanted_bytes();
    outcome.free_bytes = memory->free_bytes();
  }
}

std::map<std::string, double> counters_of(const Row& row, const Outcome& outcome, const Sample& sample) {
  std::map<std::string, double> counters;
  const Work work = row.work();
  const auto rate = [&](const char* name, double amount) {
    if (amount > 0 && sample.seconds > 0) counters[name] = amount / sample.seconds;
  };
  rate("images_per_second", work.images);
  rate("flops_per_second", work.flops);
  rate("bytes_per_second", outcome.bytes.empty() ? work.bytes : outcome.bytes[row.part]);
  const double beside = sample.peak_flops_per_second, peak = beside > 0 ? beside : outcome.peak_flops_per_second;
  if (peak > 0) rate("share_of_peak", work.flops / row.group->ranks / peak);
  if (sample.peak_flops_per_second > 0) counters["peak_flops_per_second"] = sample.peak_flops_per_second;
  if (sample.clock_mhz > 0) counters["core_mhz"] = sample.clock_mhz;
  if (sample.sums.seconds > 0) {
    counters["summed_bytes"] = sample.sums.bytes;
    counters["summed_bytes_per_second"] = sample.sums.bytes / sample.sums.seconds;
    counters["hidden_share"] = sample.sums.hidden_seconds / sample.sums.seconds;
  }
  const auto mebibytes = [&](const char* name, std::size_t bytes) {
    counters[name] = static_cast<double>(bytes) / mebibyte;
  };
  mebibytes("arena_MiB", outcome.memory.arena);
  mebibytes("workspace_MiB", outcome.memory.workspace);
  mebibytes("plan_MiB", outcome.memory.total());
  if (row.group->layers > 0) counters["layers"] = row.group->layers;
  const auto reading = [&](const char* name, const std::optional<double>& value) {
    if (value) counters[name] = *value;
  };
  reading("sm_mhz", sample.state.sm_mhz);
  reading("temperature_c", sample.state.temperature_c);
  reading("power_w", sample.state.power_w);
  for (const auto& [name, value] : outcome.counters) counters[name] = value;
  return counters;
}

Json entry_of(const Run& run, const Row& row, const Outcome& outcome, const std::vector<Sample>& samples) {
  Json entry = json_of(run);
  if (run.iterations == 0) add_failure(entry, outcome);
  entry["key"] = fields_of(row.key);
  if (!row.rerun.empty()) entry["rerun"] = row.rerun;
  if (!outcome.algorithm.empty()) entry["algorithm"] = outcome.algorithm;
  if (const Launches launches = launches_of(samples); launches != Launches::none)
    entry["launches"] = to_string(launches);
  if (const std::string reasons = throttled_of(samples); !reasons.empty()) entry["throttled"] = reasons;
  const std::vector<Sample>& all = outcome.samples[row.part];
  if (all.empty()) return entry;
  const Grade its = grade(seconds_of(all), conditions_of(all, outcome.conditions));
  if (outcome.conditions.others) entry["others_share"] = *outcome.conditions.others;
  entry["grade"] = std::string(1, its.letter);
  entry["grade_reasons"] = its.reasons;
  return entry;
}

Json failure_entry(const Row& row, const Outcome& outcome, std::int64_t row_number, int passes) {
  Run run = run_of(row, outcome, row_number, passes);
  run.repetition_index = static_cast<std::int64_t>(outcome.samples[row.part].size());
  run.iterations = 0;
  return entry_of(run, row, outcome, {});
}

Json row_entry(const Row& row, const Outcome& outcome, std::int64_t row_number, int passes) {
  const std::vector<Sample>& all = outcome.samples[row.part];
  const double middle = median_interval(seconds_of(all)).middle;
  const Sample& nearest =
      *std::ranges::min_element(all, {}, [middle](const Sample& sample) { return std::abs(sample.seconds - middle); });
  Run run = run_of(row, outcome, row_number, passes);
  run.real_accumulated_time = nearest.seconds;
  run.cpu_accumulated_time = nearest.cpu_seconds;
  for (const auto& [name, value] : counters_of(row, outcome, nearest)) run.counters[name] = value;
  Json entry = entry_of(run, row, outcome, all);
  entry.erase("repetition_index");
  const auto times = [per_second =
                          benchmark::GetTimeUnitMultiplier(run.time_unit)](const std::vector<double>& seconds) {
    Json list = Json::array();
    for (const double each : seconds) list.push_back(std::round(1e9 * each) / (1e9 / per_second));  // a clock has ns
    return list;
  };
  entry["real_times"] = times(seconds_of(all));
  entry["cpu_times"] = times(cpu_seconds_of(all));
  return entry;
}

benchmark::TimeUnit unit_of(const Row& row) {
  return row.group->layers > 0 ? benchmark::kMicrosecond : benchmark::kMillisecond;
}

}  // namespace lamina::bench
