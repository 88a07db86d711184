// Measures the points of a sweep, and keeps them.

#include "sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "bench/io/text.h"
#include "bench/measure/row_key.h"
#include "bench/rows/entries.h"
#include "lamina/devices.h"
#include "lamina/error.h"
#include "lamina/random.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// How long each file of a network is, and a hash of its bytes: rows have the names of files alone.
std::string files_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    text += fmt::format(", {} of {} bytes ({:016x})", path.filename().string(), bytes.size(), hash(bytes));
  }
  return text;
}

/// The memory that the processor has free now, less a reserve.
std::size_t free_memory() {
  return static_cast<std::size_t>(0.9 * 1024 * std::strtod(value_of("/proc/meminfo", "MemAvailable").c_str(), nullptr));
}

std::vector<std::string> cells_of(const Series& series, const SweepPoint& point) {
  std::vector<std::string> row = {to_string(series), fmt::format("{}", point.batch),
                                  point.threads > 0 ? fmt::format("{}", point.threads) : ""};
  row.resize(7);
  row.push_back(point.failure);
  if (point.seconds.empty()) return row;
  const Interval ms = median_interval(point.seconds);
  row[3] = fmt::format("{:.3f}", 1e3 * ms.middle);
  row[4] = fmt::format("{:.3f} .. {:.3f}", 1e3 * ms.low, 1e3 * ms.high);
  row[5] = fmt::format("{:.3f}", 1e3 * ms.middle / point.batch);
  row[6] = fmt::format("{:.1f}", point.batch / ms.middle);
  return row;
}

}  // namespace

std::string to_string(const Series& series) {
  return fmt::format("{} on {}, {} {}{}", series.network, series.backend, to_string(series.dtype),
                     to_string(series.layout), series.image > 0 ? fmt::format(", image {}", series.image) : "");
}

SweepRunner::SweepRunner(const SweepOptions& options, const MakeBackend& make)
    : options_(options), make_(make), file_(options.out) {
  limit_ = limit_by_user() ? options.backends.memory_limit : free_memory();
  std::error_code none;  // for paths without a size: no file, a folder, a pipe
  const auto bytes = std::filesystem::file_size(options.out, none);
  const bool again = !none && bytes > 0;
  RunFile before;
  if (again) before = read_run_file(options.out, true);
  if (again && !limit_by_user()) limit_ = before.context.value("sweep_memory_limit", limit_);
  base_ = &setting_for(options.backends.threads, options.net.image, false);
  Json& context = file_.document["context"];
  context = start_context(base_->session.backends);
  context["sweep"] = settings();
  context["sweep_memory_limit"] = limit_;
  if (again) go_on(before);
}

SweepRunner::Setting& SweepRunner::setting_for(int threads, int image, bool gpu) {
  std::unique_ptr<Setting>& made = settings_[{threads, image, gpu}];
  if (made == nullptr) {
    RunOptions its = options_;
    its.backends.threads = threads;
    its.net.image = image;
    if (!gpu) its.backends.memory_limit = limit_;  // a GPU's allocator reports what it lacks
    made = std::make_unique<Setting>(its, make_, progress_);
  }
  return *made;
}

bool SweepRunner::limit_by_user() const {
  return options_.backends.memory_limit != std::numeric_limits<std::size_t>::max();
}

std::string SweepRunner::settings() const {
  // The settings in the names of rows may differ: another size, type or limit is another row.
  PlanningSettings unnamed = options_;
  unnamed.net.onnx.clear();
  return fmt::format("{} passes {}{}", options_.passes, fmt::join(arguments_of(unnamed, true), " "),
                     to_utf8(files_text(options_.net.onnx)));
}

void SweepRunner::go_on(const RunFile& before) {
  const RunFile now{options_.out, file_.document["context"], {}};
  const auto refuse = [&](const std::string& difference) {
    throw UsageError(
        fmt::format("{} is of another sweep ({}); give another --benchmark_out", options_.out.string(), difference));
  };
  std::vector<const char*> facts(program_facts.begin(), program_facts.end());
  facts.insert(facts.begin(), {"sweep", "processor", "num_cpus", "threads", "backend_cudnn"});
  for (const char* fact : facts)
    if (before.fact(fact) != now.fact(fact))
      refuse(fmt::format("{}: {}, and now {}", fact, before.fact(fact), now.fact(fact)));
  if (const auto differences = other_machine(before, now); !differences.empty()) refuse(differences.front());
  std::ifstream stream(options_.out);
  file_.document["benchmarks"] = Json::parse(stream, not_too_deep)["benchmarks"];
  known_ = before.rows;
  fmt::print(stderr, "{}: resuming after {} rows\n", options_.out.string(), known_.size());
}

SweepRunner::Setting& SweepRunner::setting_of(const Series& series, int threads) {
  return setting_for(threads > 0 ? threads : options_.backends.threads, series.image, runs_on_gpu(series.backend));
}

std::vector<Row> SweepRunner::rows_of(Setting& its, const Series& series, int batch, int threads) {
  std::vector<Row> rows = net_rows(its.session, its.options, series.config(batch));
  std::erase_if(rows, [&](const Row& row) {
    return (row.key["part"] == "inference") != (options_.plan.options.mode == Mode::inference);
  });
  const Group& plain = *rows.back().group;
  Group its_group = plain;
  const std::string type = rows.back().key["type"];
  its_group.title += fmt::format("{}, batch {}", type == "f32" ? "" : " in " + type, batch);
  if (threads > 0) {
    its_group.title += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
    its_group.flops_per_pass *= static_cast<double>(all_threads()) / threads;  // as the time is longer
  }
  const auto group = std::make_shared<const Group>(std::move(its_group));
  for (Row& row : rows) {
    row.group = group;
    row.rerun = rerun_of_point(series, row, threads);
    if (threads > 0) row.key["differs"]["threads"] = fmt::format("{}", threads);
    row.name = row_name(row.key);
  }
  return rows;
}

std::string SweepRunner::rerun_of(const Series& series, const std::vector<std::string>& more) const {
  PlanningSettings settings = options_;
  settings.net.image = series.image;
  std::vector<std::string> flags = passes_flag(options_.passes);
  flags.insert(flags.end(), more.begin(), more.end());
  flags.emplace_back("--benchmark_out=sweep.json");
  return rerun("sweep", series.config(0), settings, flags);
}

std::string SweepRunner::rerun_of_point(const Series& series, const Row& row, int threads) const {
  PlanningSettings settings = options_;
  settings.net.image = series.image;
  settings.plan.options.mode = Mode::training;  // `run` takes rows by their names
  if (threads > 0) settings.backends.threads = threads;
  const std::vector<std::string> flags = passes_flag(options_.passes);
  return rerun_row(row.name, row.group->config, settings, flags);
}

void SweepRunner::plan(const Series& series, const std::vector<SweepPoint>& points) {
  for (const SweepPoint& point : points) {
    std::vector<Row> rows = rows_of(setting_of(series, point.threads), series, point.batch, point.threads);
    if (!known_.contains(rows.back().name)) planned_.push_back(std::move(rows.back()));
  }
}

void SweepRunner::leave_out(const Series& series, int batch) {
  const auto all_but_batch = [](RowKey key) { return key["batch"] = 0, key; };
  const Json its = all_but_batch(rows_of(setting_of(series), series, batch, 0).back().key);
  for (const Row& row : planned_)
    if (row.key["batch"] >= batch && all_but_batch(row.key) == its && left_out_.insert(row.name).second)
      progress_.group_failed(*row.group, 1 + passes_on(series.backend, options_.passes));
}

SweepPoint SweepRunner::point(const Series& series, int batch, int threads) {
  const Config c = series.config(batch);
  Setting& its = setting_of(series, threads);
  const std::vector<Row> rows = rows_of(its, series, batch, threads);
  const int passes = passes_on(c.backend, options_.passes);
  const std::string& name = rows.back().name;  // name of the whole pass's row
  if (!known_.contains(name) && interrupted() == 0) measure(rows, its, passes);
  const auto found = known_.find(name);
  if (found == known_.end()) return {batch, threads};  // interrupted
  SweepPoint point{batch, threads, found->second.seconds, found->second.failure, found->second.others_share};
  measured_ = measured_ || !point.seconds.empty();
  if (shown_.insert(name).second) table_.rows.push_back(cells_of(series, point));
  return point;
}

void SweepRunner::measure(const std::vector<Row>& rows, Setting& its, int passes) {
  ++number_;
  int done = 0;
  while (done < passes && its.meter.measure(rows.front(), static_cast<std::size_t>(done))) ++done;
  const Outcome outcome = its.meter.take(rows.front());
  if (outcome.failure.empty() && done < passes) return;  // interrupted
  for (const Row& row : rows) {
    RunRow& known = known_[row.name];
    known.key = row.key;
    known.failure = outcome.failure;
    known.others_share = outcome.conditions.others.value_or(0);
    known.seconds = seconds_of(outcome.samples[row.part]);
    Json& entries = file_.document["benchmarks"];
    if (!known.seconds.empty()) entries.push_back(row_entry(row, outcome, {number_, passes}));
    if (!outcome.failure.empty())
      entries.push_back(failure_entry(row, outcome, {number_, passes, std::ssize(known.seconds)}, unit_of(row)));
  }
  file_.save_now_and_then();
}

void SweepRunner::add_unplanned(Json entry) { file_.document["not_planned"].push_back(std::move(entry)); }

void SweepRunner::finish(const Json& answers) {
  clear_step();
  file_.document["answers"] = answers;
  bench::finish(file_, base_->session.peaks);
}

int all_threads() { return devices().front().cores; }

}  // namespace lamina::bench
