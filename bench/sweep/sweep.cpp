// The subcommand `sweep`: which points it asks for, and what it answers.

#include "sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "bench/io/interrupt.h"
#include "bench/measure/memory_prediction.h"
#include "lamina/devices.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int usual_batch = 16;  // batch for threads, and between the odd batches
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

std::size_t gpu_memory() {
  for (const DeviceInfo& device : devices())
    if (device.kind == DeviceInfo::Kind::gpu && device.number == 0) return device.memory_bytes;
  return 0;
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const MakeBackend& make) : options_(options), points_(options, make) {}

  int run(const Print& print) {
    const std::vector<Series> all = all_series();
    for (const Series& series : all) plan_points(series);
    if (unplanned_.size() == all.size()) return 1;
    points_.begin();
    for (const Series& series : all) {
      if (interrupted() != 0) break;
      if (unplanned_.contains(to_string(series))) continue;
      batches(series);
      if (!runs_on_gpu(series.backend)) threads(series);
    }
    points_.finish(answers_);
    print(text());
    if (interrupted() != 0) {
      fmt::print(stderr, "interrupted; rerun the command to resume\n");
      return 128 + interrupted();
    }
    return points_.any_measured() && !any_failed_ ? 0 : 1;
  }

 private:
  std::vector<Series> all_series() {
    std::vector<Series> all;
    const std::vector<int> images = options_.images.empty() ? std::vector<int>{options_.net.image} : options_.images;
    for (const std::string& network : options_.networks)
      for (const std::string& backend : points_.backends())
        for (const DType dtype : options_.configs.dtypes)
          for (const Layout layout : options_.configs.layouts)
            for (const int image : images)
              all.push_back({bench::network(network, options_.net).name, backend, dtype, layout, image});
    return all;
  }

  Mode mode() const { return options_.plan.options.mode; }

  std::size_t limit_of(const Series& series) const {
    return runs_on_gpu(series.backend) && options_.backends.memory_limit == no_limit ? gpu_memory()
                                                                                     : points_.memory_limit();
  }

  /// Has the progress know the points of the series, and finds its largest batch. A series that cannot be planned is
  /// named here and in the file, and left out.
  void plan_points(const Series& series) {
    try {
      points_.plan(series, points_of(series));
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
    points_.add_unplanned(std::move(entry));
    fmt::print(stderr, "{} cannot be planned: {}\n", to_string(series), error.what());
  }

  std::vector<SweepPoint> points_of(const Series& series) {
    std::vector<SweepPoint> points;
    for (const int batch : options_.configs.batches) points.push_back({batch, 0});
    if (options_.configs.batches.empty()) {
      Session& session = points_.setting_of(series).session;
      MemoryPredictor predictor(session.plans, session.backends, series.config(usual_batch), mode());
      const LargestBatch largest = largest_[to_string(series)] = predictor.largest_under(limit_of(series));
      for (int batch = 1; batch <= largest.batch; batch *= 2) points.push_back({batch, 0});
      for (const int batch : {usual_batch - 1, usual_batch + 1})
        if (largest.batch >= usual_batch) points.push_back({batch, 0});
      points.push_back({std::max(1, largest.batch), 0});  // one image is tried, whatever is predicted
    }
    if (!runs_on_gpu(series.backend))
      for (const int count : thread_counts()) points.push_back({thread_batch(), count});
    return points;
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

  void batches(const Series& series) {
    LargestRun largest;
    largest.limit = bytes_text(static_cast<double>(limit_of(series)));
    std::vector<SweepPoint> all;
    const auto answer_batches = [&] {
      std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.batch < b.batch; });
      if (const auto answer = batch_flat(all)) add_answer(series, *answer);
      if (const auto answer = odd_batches(all)) add_answer(series, *answer);
    };
    std::string too_long;
    const auto try_batch = [&](int batch) -> const SweepPoint* {
      if (interrupted() != 0) return nullptr;
      const double seconds = all.empty() ? 0 : batch * seconds_per_image(all);
      if (seconds > options_.longest_pass) {
        too_long = fmt::format("a pass of batch {} would take about {}, more than --longest_pass", batch,
                               seconds_text(seconds));
        points_.leave_out(series, batch);
        return nullptr;
      }
      return &all.emplace_back(points_.point(series, batch, 0));
    };
    if (!options_.configs.batches.empty()) {
      for (const int batch : options_.configs.batches) try_batch(batch);
      return answer_batches();
    }
    const LargestBatch predicted = largest_.at(to_string(series));
    largest.predicted = predicted.batch;
    largest.at_least = predicted.at_least;
    for (int batch = 1; batch <= std::max(1, predicted.batch); batch *= 2) {
      const SweepPoint* its_point = try_batch(batch);
      if (its_point == nullptr) break;
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
    if (!largest.ran) largest.not_run = interrupted() != 0 ? "interrupted" : too_long;
    answer_batches();
    add_answer(series, largest_batch(largest));
  }

  static double seconds_per_image(const std::vector<SweepPoint>& points) {
    for (auto point = points.rbegin(); point != points.rend(); ++point)
      if (!point->seconds.empty()) return median_interval(point->seconds).middle / point->batch;
    return 0;
  }

  void threads(const Series& series) {
    std::vector<SweepPoint> points;
    for (const int count : thread_counts()) {
      if (interrupted() != 0) return;
      points.push_back(points_.point(series, thread_batch(), count));
    }
    if (const auto answer = best_threads(points)) add_answer(series, *answer);
  }

  void add_answer(const Series& series, const Answer& answer) {
    Json json = entry_of(series);
    json["what"] = answer.what;
    if (answer.value) json["value"] = *answer.value;
    json["text"] = answer.text;
    answers_.push_back(std::move(json));
  }

  /// The facts of a series: its key without a batch, and the command that sweeps it again.
  Json entry_of(const Series& series) const {
    std::vector<std::string> flags;  // flags that were given
    if (!options_.configs.batches.empty())
      flags.push_back(fmt::format("--batch={}", fmt::join(options_.configs.batches, ",")));
    if (!options_.thread_counts.empty())
      flags.push_back(fmt::format("--thread_counts={}", fmt::join(options_.thread_counts, ",")));
    PlanningSettings its = options_;
    its.net.image = series.image;
    Json key = key_of("net", series.config(0), mode() == Mode::inference ? "inference" : "total", its);
    key.erase("batch");
    return {{"network", series.network},
            {"backend", series.backend},
            {"key", std::move(key)},
            {"rerun", points_.rerun_of(series, flags)}};
  }

  std::string text() const {
    std::string text = points_.table().text() + "\n";
    for (const Json& answer : answers_)
      text += fmt::format("{} on {}: {}\n", answer["network"].get<std::string>(), answer["backend"].get<std::string>(),
                          answer["text"].get<std::string>());
    for (const auto& [series, reason] : unplanned_)
      text += fmt::format("{} was left out, as it cannot be planned: {}\n", series, reason);
    return text;
  }

  const SweepOptions& options_;
  SweepRunner points_;
  Json answers_ = Json::array();
  std::map<std::string, LargestBatch> largest_;   ///< largest batch by series, if no batches are named
  std::map<std::string, std::string> unplanned_;  ///< series that cannot be planned, with the reason
  bool any_failed_ = false;                       ///< whether a series failed by another error than Unsupported
};

}  // namespace

int sweep(const SweepOptions& options, const MakeBackend& make, const Print& print) {
  return Sweep(options, make).run(print);
}

}  // namespace lamina::bench
