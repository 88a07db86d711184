// Rows as entries of a result file.

#include "entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "lamina/error.h"
#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

template <class Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

void add_failure(Json& entry, const Outcome& outcome) {
  entry["error_occurred"] = true;
  entry["error_message"] = to_utf8(outcome.failure);  // the text may have a file's name, which may not be UTF-8
  constexpr const char* kinds[] = {"failed", "unsupported", "out_of_memory"};
  entry["failure"] = kinds[static_cast<std::size_t>(outcome.kind)];
  if (outcome.wanted_bytes > 0) {
    entry["bytes_wanted"] = outcome.wanted_bytes;
    entry["bytes_free"] = outcome.free_bytes;
  }
}

}  // namespace

void set_failure(Outcome& outcome, const std::exception& error) {
  const bool host_is_full = is<std::bad_alloc>(error);
  const char* kind = is<Unsupported>(error)   ? "Unsupported"
                     : is<OutOfMemory>(error) ? "OutOfMemory"
                     : is<DeviceError>(error) ? "DeviceError"
                     : host_is_full           ? "OutOfMemory on the host"
                                              : "Error";
  outcome.failure = fmt::format("{}: {}", kind, error.what());
  if (is<Unsupported>(error)) outcome.kind = Failure::unsupported;
  if (host_is_full || is<OutOfMemory>(error)) outcome.kind = Failure::out_of_memory;
  if (const auto* memory = dynamic_cast<const OutOfMemory*>(&error)) {
    outcome.wanted_bytes = memory->wanted_bytes();
    outcome.free_bytes = memory->free_bytes();
  }
}

Figures figures_of(const Row& row, const Outcome& outcome, std::span<const Sample> run) {
  Sample sample = run.back();
  sample.seconds = mean(seconds_of(run));
  sample.cpu_seconds = mean(seconds_of(run, &Sample::cpu_seconds));
  Figures figures = {{"real_time", sample.seconds}, {"cpu_time", sample.cpu_seconds}};
  const Work work = row.work();
  const auto rate = [&](const char* name, double amount) {
    if (amount > 0 && sample.seconds > 0) figures[name] = amount / sample.seconds;
  };
  rate("images_per_second", work.images);
  rate("flops_per_second", work.flops);
  rate("bytes_per_second", outcome.bytes.empty() ? work.bytes : outcome.bytes[row.part]);
  const double beside = sample.peak_flops_per_second, peak = beside > 0 ? beside : outcome.peak_flops_per_second;
  if (peak > 0) rate("share_of_peak", work.flops / row.group->ranks / peak);
  if (sample.peak_flops_per_second > 0) figures["peak_flops_per_second"] = sample.peak_flops_per_second;
  if (sample.clock_mhz > 0) figures["core_mhz"] = sample.clock_mhz;
  if (sample.sums.seconds > 0) {
    figures["summed_bytes"] = sample.sums.bytes;
    figures["summed_bytes_per_second"] = sample.sums.bytes / sample.sums.seconds;
    figures["hidden_share"] = sample.sums.hidden_seconds / sample.sums.seconds;
  }
  const auto mebibytes = [&](const char* name, std::size_t bytes) {
    figures[name] = static_cast<double>(bytes) / mebibyte;
  };
  mebibytes("arena_MiB", outcome.memory.arena);
  mebibytes("workspace_MiB", outcome.memory.workspace);
  mebibytes("plan_MiB", outcome.memory.total());
  if (row.group->layers > 0) figures["layers"] = row.group->layers;
  for (const auto& [name, value] : readings_of(sample.state)) figures[name] = value;
  for (const auto& [name, value] : outcome.counters) figures[name] = value;
  return figures;
}

Figures figures_of(const Row& row, const Outcome& outcome, const Runs& runs, const std::string& statistic) {
  std::map<std::string, std::vector<double>> by_name;
  for (const auto& run : runs)
    for (const auto& [name, value] : figures_of(row, outcome, run)) by_name[name].push_back(value);
  Figures figures;
  for (const auto& [name, values] : by_name) {
    const double middle = mean(values);
    figures[name] = statistic == "mean"     ? middle
                    : statistic == "median" ? median_interval(values).middle
                    : statistic == "stddev" ? deviation(values)
                    : middle != 0           ? deviation(values) / middle
                                            : 0;  // the mean is 0 only if all values are 0
  }
  return figures;
}

Json begin_entry(const std::string& name, const Place& place) {
  const bool one_run = place.aggregate.empty();
  Json entry = {{"name", name + (one_run ? "" : "_" + place.aggregate)},
                {"family_index", place.row},
                {"per_family_instance_index", 0},
                {"run_name", name},
                {"run_type", one_run ? "iteration" : "aggregate"},
                {"repetitions", place.repetitions}};
  if (one_run) entry["repetition_index"] = place.repetition;
  entry["threads"] = 1;
  if (!one_run) entry["aggregate_name"] = place.aggregate;
  if (!one_run) entry["aggregate_unit"] = place.aggregate == "cv" ? "percentage" : "time";
  entry["iterations"] = place.iterations;
  return entry;
}

Json entry_of(const Row& row, const Outcome& outcome, const Place& place, benchmark::TimeUnit unit,
              const Figures& figures, std::span<const Sample> samples) {
  const bool is_share = place.aggregate == "cv";
  Json entry = begin_entry(row.name, place);
  for (const char* time : {"real_time", "cpu_time"})
    entry[time] = figures.at(time) * (is_share ? 1 : benchmark::GetTimeUnitMultiplier(unit));
  entry["time_unit"] = benchmark::GetTimeUnitString(unit);
  for (const auto* counters : {&figures, &place.by_library})
    for (const auto& [name, value] : *counters)
      if (std::isfinite(value) && !entry.contains(name)) entry[name] = value;
  if (!outcome.note.empty()) entry["label"] = outcome.note;
  if (place.iterations == 0) add_failure(entry, outcome);
  entry["key"] = row.key;
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

Json failure_entry(const Row& row, const Outcome& outcome, Place place, benchmark::TimeUnit unit) {
  place.iterations = 0;
  return entry_of(row, outcome, place, unit, {{"real_time", 0}, {"cpu_time", 0}}, {});
}

Json row_entry(const Row& row, const Outcome& outcome, const Place& place) {
  const std::vector<Sample>& all = outcome.samples[row.part];
  const double middle = median_interval(seconds_of(all)).middle;
  const auto nearest =
      std::ranges::min_element(all, {}, [middle](const Sample& sample) { return std::abs(sample.seconds - middle); });
  const benchmark::TimeUnit unit = unit_of(row);
  Json entry = entry_of(row, outcome, place, unit, figures_of(row, outcome, {nearest, 1}), all);
  entry.erase("repetition_index");
  const auto times = [per_second = benchmark::GetTimeUnitMultiplier(unit)](const std::vector<double>& seconds) {
    Json list = Json::array();
    for (const double each : seconds) list.push_back(std::round(1e9 * each) / (1e9 / per_second));  // clocks count ns
    return list;
  };
  entry["real_times"] = times(seconds_of(all));
  entry["cpu_times"] = times(seconds_of(all, &Sample::cpu_seconds));
  return entry;
}

benchmark::TimeUnit unit_of(const Row& row) {
  return row.group->layers > 0 ? benchmark::kMicrosecond : benchmark::kMillisecond;
}

}  // namespace lamina::bench
