// The subcommand `sweep`: its points, measured or taken from the file that an earlier sweep left, and what they answer.

#include "sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "answers.h"
#include "bench/compare/run_file.h"
#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "bench/rows/entries.h"
#include "bench/rows/meter.h"
#include "lamina/error.h"
#include "lamina/random.h"

namespace lamina::bench {
namespace {

constexpr int usual_batch = 16;  // batch of the points for threads; 15 and 17 are the odd batches

std::size_t gpu_memory() {
  for (const DeviceInfo& device : devices())
    if (device.kind == DeviceInfo::Kind::gpu && device.number == 0) return device.memory_bytes;
  return 0;
}

/// The time per image of the last point that has times; 0: there is none.
double seconds_per_image(const std::vector<SweepPoint>& points) {
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (!point->seconds.empty()) return median_interval(point->seconds).middle / point->batch;
  return 0;
}

/// The settings that all points of a question share.
struct Series {
  std::string network, backend;
  DType dtype;
  Layout layout;
  int image;

  Config config(int batch) const { return {network, backend, dtype, layout, batch}; }
};

/// "resnet18 on eigen, f32 nchw, image 64"
std::string to_string(const Series& series) {
  return fmt::format("{} on {}, {} {}{}", series.network, series.backend, to_string(series.dtype),
                     to_string(series.layout), series.image > 0 ? fmt::format(", image {}", series.image) : "");
}

/// A session with one number of threads and one image size. Rows point to it.
struct Setting {
  Setting(const RunOptions& its, const MakeBackend& make, Progress& progress)
      : options(its), session(options, make), meter(session, options, progress) {}
  RunOptions options;
  Session session;
  Meter meter;
};

/// All processors, whatever --threads says.
int all_threads() { return devices().front().cores; }

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

class Sweep {
 public:
  /// Reads the file of an earlier sweep. Throws UsageError unless it is of this sweep on this machine, and FileError.
  Sweep(const SweepOptions& options, const MakeBackend& make) : options_(options), make_(make), file_(options.out) {
    const bool limited = options.backends.has_memory_limit();
    limit_ = limited ? options.backends.memory_limit : free_memory();
    std::error_code none;  // for paths without a size: no file, a folder, a pipe
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

  int run(const Print& print) {
    for (const Series& series : all_series()) plan(series);
    if (planned_.empty()) return 1;
    progress_ = Progress(base_->session.peaks, announced_, options_.passes);
    for (const Planned& its : planned_) {
      if (interrupted() != 0) break;
      batches(its);
      if (!runs_on_gpu(its.series.backend)) threads(its.series);
    }
    clear_step();
    file_.document["answers"] = answers_;
    finish(file_, base_->session.peaks);
    print(text());
    if (interrupted() != 0) {
      fmt::print(stderr, "interrupted; rerun the command to resume\n");
      return 128 + interrupted();
    }
    return any_measured_ && !any_failed_ ? 0 : 1;
  }

 private:
  struct Planned {
    Series series;
    std::vector<int> batches;               ///< batches in the order in which they run
    std::optional<LargestBatch> largest{};  ///< largest batch, which runs after these; none: batches are named
  };

  std::vector<Series> all_series() {
    std::vector<Series> all;
    const std::vector<int> images = options_.images.empty() ? std::vector<int>{options_.net.image} : options_.images;
    for (const std::string& network : options_.networks)
      for (const std::string& backend : base_->session.backends.names())
        for (const DType dtype : options_.configs.dtypes)
          for (const Layout layout : options_.configs.layouts)
            for (const int image : images)
              all.push_back({bench::network(network, options_.net).name, backend, dtype, layout, image});
    return all;
  }

  Mode mode() const { return options_.plan.options.mode; }

  std::size_t limit_of(const Series& series) const {
    return runs_on_gpu(series.backend) && !options_.backends.has_memory_limit() ? gpu_memory() : limit_;
  }

  /// Announces the points of a series to the progress, and finds its largest batch. A series that cannot be planned is
  /// left out, and named on standard error and in the file.
  void plan(const Series& series) {
    try {
      Planned its = planned(series);
      for (const int batch : its.batches) announce(series, batch, 0);
      if (its.largest) announce(series, std::max(1, its.largest->batch), 0);
      if (!runs_on_gpu(series.backend))
        for (const int count : thread_counts()) announce(series, thread_batch(), count);
      planned_.push_back(std::move(its));
    } catch (const UsageError&) {
      throw;  // before anything is measured
    } catch (const std::exception& error) {
      leave_out(series, error);
    }
  }

  void leave_out(const Series& series, const std::exception& error) {
    const bool unsupported = dynamic_cast<const Unsupported*>(&error) != nullptr;
    any_failed_ = any_failed_ || !unsupported;
    unplanned_.emplace(to_string(series), error.what());
    Json entry = entry_of(series);
    entry.update(
        {{"series", to_string(series)}, {"reason", error.what()}, {"failure", unsupported ? "unsupported" : "failed"}});
    file_.document["not_planned"].push_back(std::move(entry));
    fmt::print(stderr, "{} cannot be planned: {}\n", to_string(series), error.what());
  }

  /// The named batches. Without them 1, 2, 4, ... up to the largest that fits, 15 and 17; batch 1 is tried even if it
  /// is predicted not to fit.
  Planned planned(const Series& series) {
    if (!options_.configs.batches.empty()) return {series, options_.configs.batches};
    const MemoryPredictor predictor{setting_of(series, 0).session, series.config(usual_batch), mode()};
    const LargestBatch largest = predictor.largest_under(limit_of(series));
    std::vector<int> batches;
    for (int batch = 1; batch <= std::max(1, largest.batch); batch *= 2) {
      batches.push_back(batch);
      if (batch == usual_batch) batches.push_back(batch - 1);
      if (batch == usual_batch && batch < largest.batch) batches.push_back(batch + 1);
    }
    return {series, batches, largest};
  }

  std::vector<int> thread_counts() const {
    std::vector<int> counts = options_.thread_counts;
    std::sort(counts.begin(), counts.end());
    if (!counts.empty()) return counts;
    for (int count = 1; count < all_threads(); count *= 2) counts.push_back(count);
    counts.push_back(all_threads());
    return counts;
  }

  int thread_batch() const { return options_.configs.batches.empty() ? usual_batch : options_.configs.batches.front(); }

  void batches(const Planned& planned) {
    const auto& [series, batches, predicted] = planned;
    std::vector<SweepPoint> all;
    std::string too_long;
    const auto has_times = [&, &its = series](int batch) {
      if (interrupted() != 0) return false;
      const double seconds = batch * seconds_per_image(all);
      if (seconds <= options_.longest_pass) return !all.emplace_back(point(its, batch, 0)).seconds.empty();
      too_long =
          fmt::format("a pass of batch {} would take about {}, more than --longest_pass", batch, seconds_text(seconds));
      withdraw(its, batch);
      return false;
    };
    for (const int batch : batches)
      if (!has_times(batch) && predicted && std::has_single_bit(static_cast<unsigned>(batch)))
        break;  // out of memory, or it cannot run at all; 15 and 17 may fail alone
    LargestRun largest;
    if (predicted && too_long.empty() && predicted->batch > 0 && interrupted() == 0) {
      largest.ran = has_times(predicted->batch);
      largest.next_refused = largest.ran && !predicted->at_least && !has_times(predicted->batch + 1) &&
                             all.back().failure.starts_with("OutOfMemory");
    }
    std::ranges::sort(all, {}, &SweepPoint::batch);
    add_answer(series, batch_flat(all));
    add_answer(series, odd_batches(all));
    if (!predicted) return;
    largest.predicted = predicted->batch;
    largest.at_least = predicted->at_least;
    largest.limit = bytes_text(static_cast<double>(limit_of(series)));
    if (!largest.ran) largest.not_run = interrupted() != 0 ? "interrupted" : too_long;
    add_answer(series, largest_batch(largest));
  }

  void threads(const Series& series) {
    std::vector<SweepPoint> points;
    for (const int count : thread_counts()) {
      if (interrupted() != 0) return;
      points.push_back(point(series, thread_batch(), count));
    }
    add_answer(series, best_threads(points));
  }

  void add_answer(const Series& series, const std::optional<Answer>& answer) {
    if (!answer) return;
    Json json = entry_of(series);
    json["what"] = answer->what;
    if (answer->value) json["value"] = *answer->value;
    json["text"] = answer->text;
    answers_.push_back(std::move(json));
  }

  /// The facts of a series: its key without a batch, and the command that sweeps it again.
  Json entry_of(const Series& series) const {
    const PlanningSettings its = settings_of(series);
    Json key = key_of("net", series.config(0), mode() == Mode::inference ? "inference" : "total", its);
    key.erase("batch");
    std::vector<std::string> flags = passes_flag(options_.passes);
    for (const auto& [flag, given] :
         {std::pair("batch", options_.configs.batches), std::pair("thread_counts", options_.thread_counts)})
      if (!given.empty()) flags.push_back(fmt::format("--{}={}", flag, fmt::join(given, ",")));
    flags.emplace_back("--benchmark_out=sweep.json");
    return {{"network", series.network},
            {"backend", series.backend},
            {"key", std::move(key)},
            {"rerun", rerun("sweep", series.config(0), its, flags)}};
  }

  std::string text() const {
    std::string text = table_.text() + "\n";
    for (const Json& answer : answers_)
      text += fmt::format("{} on {}: {}\n", answer["network"].get<std::string>(), answer["backend"].get<std::string>(),
                          answer["text"].get<std::string>());
    for (const auto& [series, reason] : unplanned_)
      text += fmt::format("{} was left out, as it cannot be planned: {}\n", series, reason);
    return text;
  }

  Setting& setting_for(int threads, int image, bool gpu) {
    std::unique_ptr<Setting>& made = made_[{threads, image, gpu}];
    if (made == nullptr) {
      RunOptions its = options_;
      its.backends.threads = threads;
      its.net.image = image;
      if (!gpu) its.backends.memory_limit = limit_;  // a GPU's allocator reports what it lacks
      made = std::make_unique<Setting>(its, make_, progress_);
    }
    return *made;
  }

  /// `threads` 0: the options' number.
  Setting& setting_of(const Series& series, int threads) {
    return setting_for(threads > 0 ? threads : options_.backends.threads, series.image, runs_on_gpu(series.backend));
  }

  PlanningSettings settings_of(const Series& series) const {
    PlanningSettings settings = options_;
    settings.net.image = series.image;
    return settings;
  }

  /// The settings that an earlier file must share to be completed. Settings in the names of rows may differ: another
  /// size, type or limit is another row.
  std::string settings() const {
    PlanningSettings unnamed = options_;
    unnamed.net.onnx.clear();
    return fmt::format("{} passes {}{}", options_.passes, fmt::join(arguments_of(unnamed, true), " "),
                       to_utf8(files_text(options_.net.onnx)));
  }

  void go_on(const RunFile& before) {
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

  /// The rows of a point, that of the whole pass last.
  std::vector<Row> rows_of(const Series& series, int batch, int threads) {
    Setting& its = setting_of(series, threads);
    std::vector<Row> rows = net_rows(its.session, its.options, series.config(batch));
    std::erase_if(rows,
                  [&](const Row& row) { return (row.key["part"] == "inference") != (mode() == Mode::inference); });
    Group group = *rows.back().group;
    const std::string type = rows.back().key["type"];
    group.title += fmt::format("{}, batch {}", type == "f32" ? "" : " in " + type, batch);
    PlanningSettings settings = settings_of(series);
    settings.plan.options.mode = Mode::training;  // `run` takes rows by their names
    if (threads > 0) {
      settings.backends.threads = threads;
      group.title += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
      group.flops_per_pass *= static_cast<double>(all_threads()) / threads;  // as the time is longer
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

  /// Announces a point, so that the progress knows the time left.
  void announce(const Series& series, int batch, int threads) {
    std::vector<Row> rows = rows_of(series, batch, threads);
    if (!known_.contains(rows.back().name)) announced_.push_back(std::move(rows.back()));
  }

  /// Withdraws the points of this batch and of larger batches.
  void withdraw(const Series& series, int batch) {
    const auto all_but_batch = [](RowKey key) { return key["batch"] = 0, key; };
    const Json its = all_but_batch(rows_of(series, batch, 0).back().key);
    std::erase_if(announced_, [&](const Row& row) {
      const bool is_out = row.key["batch"] >= batch && all_but_batch(row.key) == its;
      if (is_out) progress_.group_failed(*row.group, 1 + passes_on(series.backend, options_.passes));
      return is_out;
    });
  }

  /// Measures a point now unless the file has it. Without times or failure: interrupted.
  SweepPoint point(const Series& series, int batch, int threads) {
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

  void measure(const std::vector<Row>& rows, Meter& meter) {
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

  const SweepOptions& options_;
  const MakeBackend& make_;
  ResultFile file_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<Setting>> made_;
  Setting* base_ = nullptr;
  std::size_t limit_ = 0;                ///< limit of plans on the processor, in bytes
  std::map<std::string, RunRow> known_;  ///< rows of the file, by name
  std::set<std::string> shown_;          ///< names of points in the table
  TextTable table_{{"network", ">batch", ">threads", ">ms", "interval", ">ms per image", ">images/s", "note"}};
  std::vector<Row> announced_;  ///< rows of the points that will be measured
  Progress progress_;
  int number_ = 0;  ///< number of the point that is measured
  Json answers_ = Json::array();
  std::vector<Planned> planned_;
  std::map<std::string, std::string> unplanned_;  ///< series that cannot be planned, with the reason
  bool any_measured_ = false;
  bool any_failed_ = false;  ///< whether a series failed by another error than Unsupported
};

}  // namespace

int sweep(const SweepOptions& options, const MakeBackend& make, const Print& print) {
  return Sweep(options, make).run(print);
}

}  // namespace lamina::bench
