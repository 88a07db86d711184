// The points of a sweep, and its file.

#include "points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "bench/io/interrupt.h"
#include "bench/rows/entries.h"
#include "lamina/error.h"
#include "lamina/random.h"

namespace lamina::bench {
namespace {

/// The name, the size and a hash of each network's file. Rows have only the name, which stays when the content changes.
std::string files_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    text += fmt::format(", {} of {} bytes ({:016x})", path.filename().string(), bytes.size(), hash(bytes));
  }
  return text;
}

/// The free memory of the processor, minus a tenth as a reserve.
std::size_t free_memory() {
  return static_cast<std::size_t>(0.9 * 1024 * std::strtod(value_of("/proc/meminfo", "MemAvailable").c_str(), nullptr));
}

std::vector<std::string> cells_of(const Series& series, const SweepPoint& point) {
  const std::string threads = point.threads > 0 ? fmt::format("{}", point.threads) : "";
  std::vector<std::string> row = {to_string(series), fmt::format("{}", point.batch), threads, "", "", "", "",
                                  point.failure};
  if (point.seconds.empty()) return row;
  const Interval ms = median_interval(point.seconds);
  row[3] = fmt::format("{:.3f}", 1e3 * ms.middle);
  row[4] = fmt::format("{:.3f} .. {:.3f}", 1e3 * ms.low, 1e3 * ms.high);
  row[5] = fmt::format("{:.3f}", 1e3 * ms.middle / point.batch);
  row[6] = fmt::format("{:.1f}", point.batch / ms.middle);
  return row;
}

bool infers(const SweepOptions& options) { return options.plan.options.mode == Mode::inference; }

}  // namespace

std::string to_string(const Series& series) {
  return fmt::format("{} on {}, {} {}{}", series.network, series.backend, to_string(series.dtype),
                     to_string(series.layout), series.image > 0 ? fmt::format(", image {}", series.image) : "");
}

int all_threads() { return devices().front().cores; }

SweepPoints::SweepPoints(const SweepOptions& options, const MakeBackend& make)
    : options_(options), make_(make), file_(options.out) {
  const bool limited = options.backends.has_memory_limit();
  limit_ = limited ? options.backends.memory_limit : free_memory();
  std::error_code none;  // set if the path has no size: it does not exist, or is a folder or a pipe
  const auto bytes = std::filesystem::file_size(options.out, none);
  const bool again = !none && bytes > 0;
  RunFile before;
  if (again) before = read_run_file(options.out, true);
  if (again && !limited) limit_ = before.context.value("sweep_memory_limit", limit_);
  base_ = &setting_for(options.backends.threads, options.net.image, false);
  Json& context = file_.document["context"];
  context = start_context(base_->session.backends);
  context["sweep"] = settings();
  context["sweep_memory_limit"] = limit_;
  if (again) go_on(before);
}

std::size_t SweepPoints::limit_of(const Series& series) const {
  if (!runs_on_gpu(series.backend) || options_.backends.has_memory_limit()) return limit_;
  for (const DeviceInfo& device : devices())
    if (device.kind == DeviceInfo::Kind::gpu && device.number == 0) return device.memory_bytes;
  return 0;
}

Json SweepPoints::entry_of(const Series& series) const {
  const PlanningSettings its = settings_of(series);
  Json key = key_of("net", series, infers(options_) ? "inference" : "total", its);
  key.erase("batch");
  std::vector<std::string> flags = passes_flag(options_.passes);
  for (const auto& [flag, given] :
       {std::pair("batch", options_.configs.batches), std::pair("thread_counts", options_.thread_counts)})
    if (!given.empty()) flags.push_back(fmt::format("--{}={}", flag, fmt::join(given, ",")));
  flags.emplace_back("--benchmark_out=sweep.json");
  return {{"network", series.network},
          {"backend", series.backend},
          {"key", std::move(key)},
          {"rerun", rerun("sweep", series, its, flags)}};
}

SweepPoints::Setting& SweepPoints::setting_for(int threads, int image, bool gpu) {
  std::unique_ptr<Setting>& made = made_[{threads, image, gpu}];
  if (made == nullptr) {
    RunOptions its = options_;
    its.backends.threads = threads;
    its.net.image = image;
    if (!gpu) its.backends.memory_limit = limit_;  // a GPU needs no limit: its allocator fails if memory is lacking
    made = std::make_unique<Setting>(its, make_, progress_);
  }
  return *made;
}

SweepPoints::Setting& SweepPoints::setting_of(const Series& series, int threads) {
  return setting_for(threads > 0 ? threads : options_.backends.threads, series.image, runs_on_gpu(series.backend));
}

PlanningSettings SweepPoints::settings_of(const Series& series) const {
  PlanningSettings settings = options_;
  settings.net.image = series.image;
  return settings;
}

/// The settings, which must equal the settings of an existing file if the sweep is to add rows to it. Settings that are
/// in the names of rows may differ, because rows of another size, type or limit are other rows.
std::string SweepPoints::settings() const {
  PlanningSettings unnamed = options_;
  unnamed.net.onnx.clear();
  return fmt::format("{} passes {}{}", options_.passes, fmt::join(arguments_of(unnamed, true), " "),
                     to_utf8(files_text(options_.net.onnx)));
}

void SweepPoints::go_on(const RunFile& before) {
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

/// The rows of a point. The row of the whole pass is the last.
std::vector<Row> SweepPoints::rows_of(const Series& series, int batch, int threads) {
  Config c = series;
  c.batch = batch;
  Setting& its = setting_of(series, threads);
  std::vector<Row> rows = net_rows(its.session, its.options, c);
  std::erase_if(rows, [&](const Row& row) { return (row.key["part"] == "inference") != infers(options_); });
  Group group = *rows.back().group;
  const std::string type = rows.back().key["type"];
  group.title += fmt::format("{}, batch {}", type == "f32" ? "" : " in " + type, batch);
  PlanningSettings settings = settings_of(series);
  settings.plan.options.mode = Mode::training;  // the command of a row needs no --inference: the row's name says it
  if (threads > 0) {
    settings.backends.threads = threads;
    group.title += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
    group.flops_per_pass *= static_cast<double>(all_threads()) / threads;  // for a longer predicted time
  }
  const auto shared = std::make_shared<const Group>(std::move(group));
  for (Row& row : rows) {
    row.group = shared;
    row.rerun = rerun_row(row.name, shared->config, settings, passes_flag(options_.passes));
    if (threads > 0) row.key["differs"]["threads"] = fmt::format("{}", threads);
    row.name = row_name(row.key);
  }
  return rows;
}

void SweepPoints::announce(const Series& series, int batch, int threads) {
  std::vector<Row> rows = rows_of(series, batch, threads);
  if (!known_.contains(rows.back().name)) announced_.push_back(std::move(rows.back()));
}

void SweepPoints::begin() { progress_ = Progress(base_->session.peaks, announced_, options_.passes); }

void SweepPoints::withdraw(const Series& series, int batch) {
  const auto all_but_batch = [](RowKey key) { return key["batch"] = 0, key; };
  const Json its = all_but_batch(rows_of(series, batch, 0).back().key);
  std::erase_if(announced_, [&](const Row& row) {
    const bool is_out = row.key["batch"] >= batch && all_but_batch(row.key) == its;
    if (is_out) progress_.group_failed(*row.group, 1 + passes_on(series.backend, options_.passes));
    return is_out;
  });
}

SweepPoint SweepPoints::point(const Series& series, int batch, int threads) {
  const std::vector<Row> rows = rows_of(series, batch, threads);
  const std::string& name = rows.back().name;
  if (!known_.contains(name) && interrupted() == 0) measure(rows, setting_of(series, threads).meter);
  const auto found = known_.find(name);
  if (found == known_.end()) return {batch, threads};
  SweepPoint point{batch, threads, found->second.seconds, found->second.failure, found->second.others_share};
  any_measured_ = any_measured_ || !point.seconds.empty();
  if (shown_.insert(name).second) table_.rows.push_back(cells_of(series, point));
  return point;
}

void SweepPoints::measure(const std::vector<Row>& rows, Meter& meter) {
  const int number = ++number_, passes = passes_on(rows.back().group->config.backend, options_.passes);
  int done = 0;
  while (done < passes && meter.measure(rows.front(), static_cast<std::size_t>(done))) ++done;
  const Outcome outcome = meter.take(rows.front());
  if (outcome.failure.empty() && done < passes) return;  // interrupted
  for (const Row& row : rows) {
    RunRow& known = known_[row.name];
    known.key = row.key;
    known.failure = outcome.failure;
    known.others_share = outcome.conditions.others.value_or(0);
    known.seconds = seconds_of(outcome.samples[row.part]);
    Json& entries = file_.document["benchmarks"];
    if (!known.seconds.empty()) entries.push_back(row_entry(row, outcome, {number, passes}));
    if (!outcome.failure.empty())
      entries.push_back(failure_entry(row, outcome, {number, passes, std::ssize(known.seconds)}, unit_of(row)));
  }
  file_.save_now_and_then();
}

}  // namespace lamina::bench
