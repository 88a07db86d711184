// The subcommand `sweep`.

#include "sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "answers.h"
#include "compare/run_file.h"
#include "context/results.h"
#include "io/interrupt.h"
#include "io/quantities.h"
#include "io/result_file.h"
#include "io/text_table.h"
#include "lamina/devices.h"
#include "lamina/error.h"
#include "measure/layers.h"
#include "measure/memory_prediction.h"
#include "rows/entries.h"
#include "rows/rows.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int usual_batch = 16;  // for threads, and for odd batches beside it
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// What is the same for all points of a question.
struct Series {
  std::string network, backend;
  DType dtype;
  Layout layout;
  int image;
  std::string algorithm;

  Config config(int batch) const { return {network, backend, dtype, layout, batch}; }
};

/// What the processor has free now, less a reserve.
std::size_t free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:"))
      return static_cast<std::size_t>(0.9 * 1024 * std::strtod(line.c_str() + line.find(':') + 1, nullptr));
  return 0;
}

std::size_t gpu_memory() {
  for (const DeviceInfo& device : devices())
    if (device.kind == DeviceInfo::Kind::gpu && device.number == 0) return device.memory_bytes;
  return 0;
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const MakeBackend& make)
      : options_(options), make_(make), terminal_(isatty(STDERR_FILENO) == 1), file_(options.out) {
    const bool by_user = options.backends.memory_limit != no_limit;
    limit_ = by_user ? options.backends.memory_limit : free_memory();
    const bool again = std::filesystem::exists(options.out) && std::filesystem::file_size(options.out) > 0;
    RunFile before;
    if (again) before = read_run_file(options.out, true);
    if (again && !by_user) limit_ = before.context.value("sweep_memory_limit", limit_);
    check_writable(options.out);
    base_ = &bench_for(options.backends.threads, options.net.image, "", false);
    Json& context = file_.document["context"];
    context = start_context(base_->session.backends);
    context["sweep"] = settings();
    context["sweep_memory_limit"] = limit_;
    if (again) go_on(before);
  }

  int run(const Print& print) {
    for (const Series& series : all_series()) {
      if (interrupted() != 0) break;
      batches(series);
      if (!runs_on_gpu(series.backend)) threads(series);
    }
    if (terminal_) fmt::print(stderr, "\r\033[K");
    file_.document["answers"] = answers_;
    end_context(file_.document["context"], base_->session.peaks);
    file_.save();
    print(text());
    if (interrupted() != 0) {
      fmt::print(stderr, "Interrupted: the same command goes on\n");
      return 128 + interrupted();
    }
    return measured_ ? 0 : 1;
  }

 private:
  /// A session with one number of threads, size and algorithm: rows point to it.
  struct Bench {
    Bench(const RunOptions& its, const MakeBackend& make) : options(its), session(options, make) {}
    RunOptions options;
    Session session;
  };

  Bench& bench_for(int threads, int image, const std::string& algorithm, bool gpu) {
    std::unique_ptr<Bench>& made = benches_[{threads, image, algorithm, gpu}];
    if (made == nullptr) {
      RunOptions its = options_;
      its.backends.threads = threads;
      its.net.image = image;
      if (!gpu) its.backends.memory_limit = limit_;  // a GPU refuses by itself what it does not have
      made = std::make_unique<Bench>(its, make_);
    }
    return *made;
  }

  /// On what a file must agree to be gone on with.
  std::string settings() const {
    const Choice& choice = options_.plan.choice;
    return fmt::format("{} passes, {}{}{}, deterministic {}, max_error {}, workspace {}, measured {}", options_.passes,
                       options_.inference ? "inference" : "training", options_.plan.fuse ? "" : ", unfused",
                       options_.plan.keep == Keep::cheap ? ", recompute" : "", choice.deterministic, choice.max_error,
                       choice.workspace_limit, choice.measure);
  }

  /// Throws UsageError unless the file is of this sweep on this machine.
  void go_on(const RunFile& before) {
    const RunFile now{options_.out, file_.document["context"], {}};
    for (const char* fact : {"sweep", "commit", "processor", "num_cpus", "threads"})
      if (before.fact(fact) != now.fact(fact))
        throw UsageError(fmt::format("{} is of another sweep ({}: {}, and now {}); give another --benchmark_out",
                                     options_.out.string(), fact, before.fact(fact), now.fact(fact)));
    std::ifstream stream(options_.out);
    file_.document["benchmarks"] = Json::parse(stream)["benchmarks"];
    known_ = before.rows;
    fmt::print(stderr, "{} has {} rows; going on\n", options_.out.string(), known_.size());
  }

  Bench& bench_of(const Series& series, int threads = 0) {
    return bench_for(threads > 0 ? threads : options_.backends.threads, series.image, series.algorithm,
                     runs_on_gpu(series.backend));
  }

  std::vector<Series> all_series() {
    std::vector<Series> all;
    const std::vector<int> images = options_.images.empty() ? std::vector<int>{options_.net.image} : options_.images;
    const std::vector<std::string> algorithms =
        options_.algorithms.empty() ? std::vector<std::string>{""} : options_.algorithms;
    for (const std::string& network : options_.networks)
      for (const std::string& backend : base_->session.backends.names())
        for (const DType dtype : options_.configs.dtypes)
          for (const Layout layout : options_.configs.layouts)
            for (const int image : images)
              for (const std::string& algorithm : algorithms)
                all.push_back({bench::network(network, options_.net).name, backend, dtype, layout, image, algorithm});
    return all;
  }

  Mode mode() const { return options_.inference ? Mode::inference : Mode::training; }

  /// Takes the algorithm for the passes for which a layer of the network has it. Throws UsageError where none has.
  void name_algorithm(Bench& its, const Series& series, const Config& c) const {
    if (series.algorithm.empty()) return;
    const Graph graph = its.session.plans.graph(c);
    Algorithms names;
    bool any = false;
    for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
      for (const DistinctLayer& layer : distinct_layers(graph))
        for (const NamedAlgorithm& one : algorithms_of(its.session.backends, c, graph, layer.first(), pass))
          if (one.listed && one.name == series.algorithm) {
            any = true;
            names[static_cast<std::size_t>(pass)] = series.algorithm;
          }
    its.session.plans.set_algorithms(names);
    if (!any)
      throw UsageError(
          fmt::format("no layer of {} on {} has the algorithm {}; lamina_bench describe {} --backend={} "
                      "lists them",
                      c.network, c.backend, series.algorithm, c.network, c.backend));
  }

  /// The rows of a point, measured now unless the file has them. `threads` 0: as the base has them.
  SweepPoint point(const Series& series, int batch, int threads) {
    const Config c = series.config(batch);
    Bench& its = bench_of(series, threads);
    name_algorithm(its, series, c);
    std::vector<Row> rows = net_rows(its.session, its.options, c);
    std::erase_if(rows, [&](const Row& row) { return (row.key.part == "inference") != options_.inference; });
    for (Row& row : rows) {
      if (!series.algorithm.empty()) row.key.differs.emplace_back("algorithm", series.algorithm);
      if (threads > 0) row.key.differs.emplace_back("threads", fmt::format("{}", threads));
      row.name = to_string(row.key);
    }
    const int passes = passes_on(c.backend, options_.passes);
    const std::string& name = rows.back().name;  // of the whole pass
    if (!known_.contains(name) && interrupted() == 0) measure(rows, its, passes, threads);
    const auto found = known_.find(name);
    if (found == known_.end()) return {batch, threads};  // interrupted
    SweepPoint point{batch, threads, found->second.seconds, found->second.failure};
    measured_ = measured_ || !point.seconds.empty();
    if (shown_.insert(name).second) table_.push_back({series, point});
    return point;
  }

  void show(const Row& row, int threads, int pass, int passes) {
    if (!terminal_ && pass > 0) return;
    fmt::print(stderr, "{}[{}] {}{}, batch {}{}{}", terminal_ ? "\r\033[K" : "", number_, row.group->title,
               row.key.type == "f32" ? "" : " in " + row.key.type, row.key.batch,
               threads > 0 ? fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s") : "",
               terminal_ ? fmt::format(", pass {} of {}", pass, passes) : "\n");
    std::fflush(stderr);
  }

  /// Adds the rows to the file when all passes are there.
  void measure(const std::vector<Row>& rows, Bench& its, int passes, int threads) {
    const Group& group = *rows.front().group;
    Outcome outcome(group.parts.size());
    ++number_;
    show(rows.front(), threads, 0, passes);
    watch_.begin();
    try {
      const std::unique_ptr<Measurement> measurement = group.open();
      if (&its == base_) outcome.peak_flops = its.session.peaks.of(group.config.backend, group.config.dtype).flops;
      for (int pass = 0; pass < passes && interrupted() == 0; ++pass) {
        show(rows.front(), threads, pass + 1, passes);
        const std::vector<Sample> samples = measurement->pass();
        for (std::size_t part = 0; part < samples.size(); ++part) outcome.samples[part].push_back(samples[part]);
        watch_.look();
      }
      outcome.memory = measurement->memory();
      outcome.bytes = measurement->bytes();
      outcome.conditions = watch_.conditions();
    } catch (const std::exception& error) {
      set_failure(outcome, error);
    }
    const bool whole = !outcome.failure.empty() || static_cast<int>(outcome.samples[0].size()) == passes;
    if (!whole) return;
    for (const Row& row : rows) {
      RunRow& known = known_[row.name];
      known.key = fields_of(row.key);
      known.failure = outcome.failure;
      for (std::size_t i = 0; i < outcome.samples[row.part].size() + (outcome.failure.empty() ? 0 : 1); ++i)
        file_.document["benchmarks"].push_back(pass_entry(row, outcome, i, number_, passes));
      known.seconds = seconds_of(outcome.samples[row.part]);
    }
    file_.save_now_and_then();
  }

  void batches(const Series& series) {
    Bench& its = bench_of(series);
    MemoryPredictor predictor(its.session.plans, its.session.backends, series.config(usual_batch), mode());
    const std::size_t limit =
        runs_on_gpu(series.backend) && options_.backends.memory_limit == no_limit ? gpu_memory() : limit_;
    LargestRun largest;
    largest.limit = bytes_text(static_cast<double>(limit));
    std::vector<SweepPoint> doubled, all;
    std::string too_long;
    const auto try_batch = [&](int batch) -> const SweepPoint* {
      if (interrupted() != 0) return nullptr;
      const double seconds = all.empty() ? 0 : batch * seconds_per_image(all);
      if (seconds > options_.longest_pass) {
        too_long = fmt::format("a pass of batch {} would take about {}, more than --longest_pass", batch,
                               seconds_text(seconds));
        return nullptr;
      }
      return &all.emplace_back(point(series, batch, 0));
    };
    if (!options_.configs.batches.empty()) {
      for (const int batch : options_.configs.batches)
        if (const SweepPoint* its_point = try_batch(batch)) doubled.push_back(*its_point);
      std::sort(doubled.begin(), doubled.end(), [](auto& a, auto& b) { return a.batch < b.batch; });
      if (const auto answer = batch_flat(doubled)) add_answer(series, *answer);
      add_odd(series, all);
      return;
    }
    LargestBatch predicted;
    try {
      predicted = predictor.largest_under(limit);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} on {} cannot be planned: {}\n", series.network, series.backend, error.what());
      return;
    }
    largest.predicted = predicted.batch;
    largest.at_least = predicted.at_least;
    for (int batch = 1; batch <= std::max(1, predicted.batch); batch *= 2) {
      const SweepPoint* its_point = try_batch(batch);
      if (its_point == nullptr) break;
      doubled.push_back(*its_point);
      if (its_point->seconds.empty()) break;  // out of memory, or it cannot run at all
      if (batch == usual_batch) {
        try_batch(batch - 1);
        if (batch < predicted.batch) try_batch(batch + 1);
      }
    }
    if (too_long.empty() && predicted.batch > 0 && interrupted() == 0) {
      const SweepPoint* proof = try_batch(predicted.batch);
      largest.ran = proof != nullptr && !proof->seconds.empty();
      if (largest.ran && !predicted.at_least) {
        const SweepPoint* next = try_batch(predicted.batch + 1);
        largest.next_refused = next != nullptr && next->failure.starts_with("OutOfMemory");
      }
    }
    largest.not_run = interrupted() != 0 ? "interrupted" : too_long;
    if (const auto answer = batch_flat(doubled)) add_answer(series, *answer);
    add_answer(series, largest_batch(largest));
    add_odd(series, all);
  }

  static double seconds_per_image(const std::vector<SweepPoint>& points) {
    for (auto point = points.rbegin(); point != points.rend(); ++point)
      if (!point->seconds.empty()) return median_interval(point->seconds).middle / point->batch;
    return 0;
  }

  void threads(const Series& series) {
    std::vector<int> counts = options_.thread_counts;
    if (counts.empty()) {
      const int most = devices().front().cores;
      for (int count = 1; count < most; count *= 2) counts.push_back(count);
      counts.push_back(most);
    }
    const int batch = options_.configs.batches.empty() ? usual_batch : options_.configs.batches.front();
    std::vector<SweepPoint> points;
    for (const int count : counts) {
      if (interrupted() != 0) return;
      points.push_back(point(series, batch, count));
    }
    if (const auto answer = best_threads(points)) add_answer(series, *answer);
  }

  void add_odd(const Series& series, const std::vector<SweepPoint>& all) {
    if (const auto answer = odd_batches(all, usual_batch)) add_answer(series, *answer);
  }

  void add_answer(const Series& series, const Answer& answer) {
    Json json = {{"network", series.network}, {"backend", series.backend}, {"what", answer.what}};
    if (answer.value) json["value"] = *answer.value;
    json["text"] = answer.text;
    json["key"] = fields_of(
        plan_key("net", series.config(0), options_.inference ? "inference" : "total", bench_of(series).options));
    json["key"].erase("batch");
    if (!series.algorithm.empty()) json["key"]["differs"]["algorithm"] = series.algorithm;
    answers_.push_back(std::move(json));
  }

  static std::string setting(const Series& series) {
    return fmt::format("{} on {}, {} {}{}{}", series.network, series.backend, to_string(series.dtype),
                       to_string(series.layout), series.image > 0 ? fmt::format(", image {}", series.image) : "",
                       series.algorithm.empty() ? "" : ", " + series.algorithm);
  }

  std::string text() const {
    TextTable table{{{"network"},
                     {"batch", true},
                     {"threads", true},
                     {"ms", true},
                     {"interval"},
                     {"ms per image", true},
                     {"images/s", true},
                     {"note"}}};
    for (const Line& line : table_) {
      const SweepPoint& point = line.point;
      const std::string threads = point.threads > 0 ? fmt::format("{}", point.threads) : "";
      std::vector<std::string> row = {setting(line.series), fmt::format("{}", point.batch), threads, "", "", "", "",
                                      point.failure};
      if (!point.seconds.empty()) {
        const Interval ms = median_interval(point.seconds);
        row[3] = fmt::format("{:.3f}", 1e3 * ms.middle);
        row[4] = fmt::format("{:.3f} .. {:.3f}", 1e3 * ms.low, 1e3 * ms.high);
        row[5] = fmt::format("{:.3f}", 1e3 * ms.middle / point.batch);
        row[6] = fmt::format("{:.1f}", point.batch / ms.middle);
      }
      table.rows.push_back(std::move(row));
    }
    std::string text = table.text() + "\n";
    for (const Json& answer : answers_)
      text += fmt::format("{} on {}: {}\n", answer["network"].get<std::string>(), answer["backend"].get<std::string>(),
                          answer["text"].get<std::string>());
    return text;
  }

  struct Line {
    Series series;
    SweepPoint point;
  };

  const SweepOptions& options_;
  const MakeBackend& make_;
  bool terminal_, measured_ = false;
  ResultFile file_;
  std::map<std::tuple<int, int, std::string, bool>, std::unique_ptr<Bench>> benches_;
  Bench* base_ = nullptr;
  Json answers_ = Json::array();
  std::map<std::string, RunRow> known_;  ///< rows of the file, by name
  std::vector<Line> table_;
  std::set<std::string> shown_;  ///< whose points are in the table
  MachineWatch watch_;
  std::size_t limit_ = 0;
  int number_ = 0;
};

}  // namespace

int sweep(const SweepOptions& options, const MakeBackend& make, const Print& print) {
  return Sweep(options, make).run(print);
}

}  // namespace lamina::bench
