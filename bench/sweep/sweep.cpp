// The subcommand `sweep`: chooses the points, measures them, and answers questions from them.

#include "sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <utility>

#include "bench/io/interrupt.h"
#include "lamina/error.h"
#include "points.h"

namespace lamina::bench {
namespace {

constexpr int usual_batch = 16;  // batch of the points for threads; 15 and 17 are the odd batches beside it

/// The time per image of the last point that has times; 0: there is none.
double seconds_per_image(const std::vector<SweepPoint>& points) {
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (!point->seconds.empty()) return median_interval(point->seconds).middle / point->batch;
  return 0;
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const MakeBackend& make) : options_(options), points_(options, make) {}

  int run(const Print& print) {
    for (const Series& series : all_series()) plan(series);
    if (planned_.empty()) return 1;
    points_.begin();
    for (const Planned& its : planned_) {
      if (interrupted() != 0) break;
      batches(its);
      if (!runs_on_gpu(its.series.backend)) threads(its.series);
    }
    clear_step();
    document()["answers"] = answers_;
    points_.finish();
    print(text());
    if (interrupted() != 0) {
      fmt::print(stderr, "interrupted; rerun the command to resume\n");
      return 128 + interrupted();
    }
    return points_.any_measured() && !any_failed_ ? 0 : 1;
  }

 private:
  struct Planned {
    Series series;
    std::vector<int> batches;               ///< batches in the order in which they run
    std::optional<LargestBatch> largest{};  ///< predicted largest batch; none: the user named batches
  };

  std::vector<Series> all_series() {
    std::vector<Series> all;
    const std::vector<int> images = options_.images.empty() ? std::vector<int>{options_.net.image} : options_.images;
    for (const std::string& network : options_.networks)
      for (const std::string& backend : points_.backends().names())
        for (const DType dtype : options_.configs.dtypes)
          for (const Layout layout : options_.configs.layouts)
            for (const int image : images)
              all.push_back({{bench::network(network, options_.net).name, backend, dtype, layout, 0}, image});
    return all;
  }

  Json& document() { return points_.file().document; }

  /// Announces the points of a series, and finds the largest batch. A series that cannot be planned is left out, and
  /// reported on standard error and in the file.
  void plan(const Series& series) {
    try {
      Planned its = planned(series);
      for (const int batch : its.batches) points_.announce(series, batch, 0);
      if (its.largest) points_.announce(series, std::max(1, its.largest->batch), 0);
      if (!runs_on_gpu(series.backend))
        for (const int count : thread_counts()) points_.announce(series, thread_batch(), count);
      planned_.push_back(std::move(its));
    } catch (const UsageError&) {
      throw;  // nothing is measured yet, so the user can correct the command at once
    } catch (const std::exception& error) {
      const bool unsupported = dynamic_cast<const Unsupported*>(&error) != nullptr;
      any_failed_ = any_failed_ || !unsupported;
      Json entry = points_.entry_of(series);
      entry.update({{"series", to_string(series)},
                    {"reason", error.what()},
                    {"failure", unsupported ? "unsupported" : "failed"}});
      document()["not_planned"].push_back(std::move(entry));
      fmt::print(stderr, "{} cannot be planned: {}\n", to_string(series), error.what());
    }
  }

  /// The batches of a series: the user's batches or, if the user named none, 1, 2, 4, ... up to the largest that fits,
  /// 15
  /// and 17. Batch 1 is tried even if the prediction says that it does not fit.
  Planned planned(const Series& series) {
    if (!options_.configs.batches.empty()) return {series, options_.configs.batches};
    const MemoryPredictor predictor{points_.session(series), series, options_.plan.options.mode};
    const LargestBatch largest = predictor.largest_under(points_.limit_of(series));
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
      if (seconds <= options_.longest_pass) return !all.emplace_back(points_.point(its, batch, 0)).seconds.empty();
      too_long =
          fmt::format("a pass of batch {} would take about {}, more than --longest_pass", batch, seconds_text(seconds));
      points_.withdraw(its, batch);
      return false;
    };
    for (const int batch : batches)
      if (!has_times(batch) && predicted && std::has_single_bit(static_cast<unsigned>(batch)))
        break;  // larger batches would fail, too; but after a failure of only 15 or 17 the sweep goes on
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
    largest.limit = bytes_text(static_cast<double>(points_.limit_of(series)));
    if (!largest.ran) largest.not_run = interrupted() != 0 ? "interrupted" : too_long;
    add_answer(series, largest_batch(largest));
  }

  void threads(const Series& series) {
    std::vector<SweepPoint> points;
    for (const int count : thread_counts()) {
      if (interrupted() != 0) return;
      points.push_back(points_.point(series, thread_batch(), count));
    }
    add_answer(series, best_threads(points));
  }

  void add_answer(const Series& series, const std::optional<Answer>& answer) {
    if (!answer) return;
    Json json = points_.entry_of(series);
    json["what"] = answer->what;
    if (answer->value) json["value"] = *answer->value;
    json["text"] = answer->text;
    answers_.push_back(std::move(json));
  }

  std::string text() {
    const auto word = [](const Json& entry, const char* field) { return entry[field].get<std::string>(); };
    std::string text = points_.table() + "\n";
    for (const Json& answer : answers_)
      text += fmt::format("{} on {}: {}\n", word(answer, "network"), word(answer, "backend"), word(answer, "text"));
    for (const Json& its : document().value("not_planned", Json::array()))
      text += fmt::format("{} was left out, as it cannot be planned: {}\n", word(its, "series"), word(its, "reason"));
    return text;
  }

  const SweepOptions& options_;
  SweepPoints points_;
  Json answers_ = Json::array();
  std::vector<Planned> planned_;
  bool any_failed_ = false;  ///< whether planning a series failed with an error other than Unsupported
};

}  // namespace

int sweep(const SweepOptions& options, const MakeBackend& make, const Print& print) {
  return Sweep(options, make).run(print);
}

}  // namespace lamina::bench
