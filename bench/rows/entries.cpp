// What Google Benchmark reports of rows, and rows as entries of a result file.

#include "entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

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

bool is_aggregate(const benchmark::BenchmarkReporter::Run& run) {
  return run.run_type == benchmark::BenchmarkReporter::Run::RT_Aggregate;
}

/// The passes of a run that the library reports. For a statistic: the passes of each of its runs. Runs that lack passes
/// are left out.
Runs runs_of(const benchmark::BenchmarkReporter::Run& run, const Row& row, const Outcome& outcome) {
  const std::span<const Sample> samples = outcome.samples[row.part];
  const std::size_t end = outcome.wanted[row.part], count = outcome.last_wanted[row.part];
  Runs whole;
  // The library's first runs only find out how many passes a run should have. Only the last runs count.
  const std::int64_t begin = is_aggregate(run) ? 0 : run.repetition_index;
  for (std::int64_t i = begin; i < (is_aggregate(run) ? run.repetitions : begin + 1); ++i) {
    const std::size_t first = end - static_cast<std::size_t>(run.repetitions - i) * count;
    if (first + count <= samples.size()) whole.push_back(samples.subspan(first, count));
  }
  return whole;
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
    figures[name] = statistic == "median"              ? median_interval(values).middle
                    : statistic == "stddev"            ? deviation(values)
                    : statistic == "cv" && middle != 0 ? deviation(values) / middle
                                                       : middle;  // a mean of 0 has only zeros: its cv is 0
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

Report::Report(std::span<const Row> rows, const Outcomes& outcomes, Take take, Begin begin)
    : rows_(rows), outcomes_(&outcomes), take_(std::move(take)), begin_(std::move(begin)) {}

bool Report::ReportContext(const Context& context) {
  if (begin_) std::exchange(begin_, {})(context);
  first_ = next_;  // the library calls this function for each group of rows, and counts the rows of a group from 0
  return true;
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  clear_step();
  bool failed = false;
  for (const Run& run : runs) {
    const std::size_t index = first_ + static_cast<std::size_t>(run.family_index);
    const Row& row = rows_[index];
    next_ = index + 1;
    const Outcome& outcome = outcomes_->at(row.group.get());
    const Runs its = runs_of(run, row, outcome);
    if (std::ssize(its) < (is_aggregate(run) ? run.repetitions : 1))
      if (is_aggregate(run) || std::exchange(failed, true) || outcome.failure.empty())
        continue;  // a run without passes and without a failure was interrupted
    take_(run, row, outcome, its);
  }
}

Report file_report(std::span<const Row> rows, const Outcomes& outcomes, ResultFile& file) {
  const auto take = [&file, rows](const Report::Run& run, const Row& row, const Outcome& outcome, const Runs& runs) {
    Place place{&row - rows.data(), run.repetitions, run.repetition_index, run.iterations, run.aggregate_name};
    for (const auto& [name, counter] : run.counters) place.by_library[name] = counter.value;
    const bool one_pass = !is_aggregate(run) && run.iterations == 1;
    file.document["benchmarks"].push_back(runs.empty() ? failure_entry(row, outcome, place, run.time_unit)
                                                       : entry_of(row, outcome, place, run.time_unit,
                                                                  figures_of(row, outcome, runs, run.aggregate_name),
                                                                  one_pass ? runs[0] : outcome.samples[row.part]));
    file.save_now_and_then();
  };
  return {rows, outcomes, take, {}};
}

benchmark::TimeUnit unit_of(const Row& row) {
  return row.group->layers > 0 ? benchmark::kMicrosecond : benchmark::kMillisecond;
}

}  // namespace lamina::bench
