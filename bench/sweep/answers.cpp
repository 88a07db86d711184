// The answers of a sweep in words, with intervals.
// tests/data/sweep_answers.json has the answers for invented times.

#include "answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/compare/comparison.h"
#include "bench/compare/unpaired.h"

namespace lamina::bench {
namespace {

constexpr double gain_that_counts = 0.05;

std::vector<double> per_image(const SweepPoint& point) {
  std::vector<double> seconds = point.seconds;
  for (double& each : seconds) each /= point.batch;
  return seconds;
}

/// The ratio of two series of passes. Its interval is widened, because each pass resembles the pass before it.
Interval ratio_of(const std::vector<double>& from, const std::vector<double>& to) {
  return inflate(unpaired_ratio_interval(from, to), std::max(autocorrelation_factor(from), autocorrelation_factor(to)));
}

/// The ratio of the times per image.
Interval change(const SweepPoint& from, const SweepPoint& to) { return ratio_of(per_image(from), per_image(to)); }

std::string ratio_text(const Interval& ratio) {
  return fmt::format("{:.3f} times ({:.3f} .. {:.3f})", ratio.middle, ratio.low, ratio.high);
}

/// The points that have times.
std::vector<SweepPoint> timed(std::vector<SweepPoint> points) {
  std::erase_if(points, [](const SweepPoint& point) { return point.seconds.empty(); });
  return points;
}

/// Adds to an answer the reasons why it is not sure: other programs took much time during its points, or the points
/// have too few passes for an interval of 95 %.
Answer from_points(Answer answer, const std::vector<SweepPoint>& points) {
  const double most = std::ranges::max_element(points, {}, &SweepPoint::others_share)->others_share;
  if (most > max_foreign_load)
    answer.text +=
        fmt::format(" Not sure: other programs took up to {:.0f} % of the processors during these points.", 100 * most);
  const auto too_few = std::ranges::find_if(points, [](const SweepPoint& point) {
    const std::size_t passes = point.seconds.size();
    return passes > 0 && unpaired_rank(passes, passes) == 0;
  });
  if (too_few != points.end())
    answer.text += fmt::format(
        " Not sure: of {} pass{} an interval is from the least to the greatest ratio, and not one of 95 %; take "
        "--passes=9.",
        too_few->seconds.size(), too_few->seconds.size() == 1 ? "" : "es");
  return answer;
}

}  // namespace

std::optional<Answer> batch_flat(const std::vector<SweepPoint>& all) {
  std::vector<SweepPoint> points;
  for (const SweepPoint& point : timed(all))
    if (points.empty() || point.batch >= 2 * points.back().batch) points.push_back(point);
  if (points.size() < 2) return std::nullopt;
  std::size_t from = points.size() - 1;  // point after which every doubling gains less than 5 %
  bool sure = true;
  while (from > 0) {
    const Interval ratio = change(points[from - 1], points[from]);
    if (ratio.middle <= 1 - gain_that_counts) {
      sure = sure && ratio.high <= 1 - gain_that_counts;
      break;
    }
    sure = sure && ratio.low > 1 - gain_that_counts;
    --from;
  }
  const SweepPoint &last = points.back(), &before = points[points.size() - 2];
  if (from + 1 == points.size())
    return from_points({"batch_flat", std::nullopt,
                        fmt::format("A larger batch than {} may gain more: from {} to {} the time per image is {}.",
                                    last.batch, before.batch, last.batch, ratio_text(change(before, last)))},
                       points);
  const SweepPoint &flat = points[from], &next = points[from + 1];
  return from_points(
      {"batch_flat", flat.batch,
       fmt::format("From batch {} on a larger batch gains less than 5 % per image{}: from {} to {} the time per "
                   "image is {}.",
                   flat.batch, sure ? "" : " (by the medians; not by every interval)", flat.batch, next.batch,
                   ratio_text(change(flat, next)))},
      points);
}

std::optional<Answer> best_threads(const std::vector<SweepPoint>& all) {
  const std::vector<SweepPoint> points = timed(all);
  if (points.size() < 2) return std::nullopt;
  const auto best = std::ranges::min_element(
      points, {}, [](const SweepPoint& point) { return median_interval(point.seconds).middle; });
  std::vector<int> equal;
  for (auto point = points.begin(); point != points.end(); ++point)
    if (point != best && ratio_of(best->seconds, point->seconds).low <= 1) equal.push_back(point->threads);
  const auto [fewest, most] = std::ranges::minmax_element(points, {}, &SweepPoint::threads);
  const SweepPoint& other = fewest != best ? *fewest : *most;
  std::string text = fmt::format("{} the fastest: with {} a pass takes {}",
                                 best->threads == 1 ? "1 thread is" : fmt::format("{} threads are", best->threads),
                                 other.threads, ratio_text(ratio_of(best->seconds, other.seconds)));
  if (!equal.empty()) text += fmt::format("; as good within noise: {}", fmt::join(equal, ", "));
  return from_points({"best_threads", best->threads, text + "."}, points);
}

std::optional<Answer> odd_batches(const std::vector<SweepPoint>& all) {
  const std::vector<SweepPoint> points = timed(all);
  const auto at = [&](int batch) { return std::ranges::find(points, batch, &SweepPoint::batch); };
  auto even = points.end();
  for (auto each = points.begin(); each != points.end(); ++each)
    if (each->batch % 2 == 0 && (even == points.end() || each->batch > even->batch) &&
        at(each->batch - 1) != points.end() && at(each->batch + 1) != points.end())
      even = each;
  if (even == points.end()) return std::nullopt;
  const SweepPoint &less = *at(even->batch - 1), &more = *at(even->batch + 1);
  const Interval below = change(*even, less), above = change(*even, more);
  const bool pay = below.high < 1 || above.high < 1;
  const bool cost = below.low > 1 && above.low > 1;
  return from_points({"odd_batches", std::nullopt,
                      fmt::format("Odd batches {}: beside {}, an image takes {} at {} and {} at {}.",
                                  pay    ? "pay here"
                                  : cost ? "do not pay"
                                         : "make no difference beyond noise, or it is inconclusive",
                                  even->batch, ratio_text(below), less.batch, ratio_text(above), more.batch)},
                     {less, *even, more});
}

Answer largest_batch(const LargestRun& found) {
  if (found.predicted == 0)
    return {"largest_batch", std::nullopt, fmt::format("Not even one image fits in {}.", found.limit)};
  std::string text = fmt::format("{} {} is the largest batch within {}, by prediction",
                                 found.at_least ? "At least" : "Batch", found.predicted, found.limit);
  if (!found.not_run.empty())
    text += fmt::format("; not run: {}", found.not_run);
  else if (!found.ran)
    text += "; but it did not run";
  else
    text += found.next_refused ? fmt::format("; it ran, and {} was out of memory", found.predicted + 1) : "; it ran";
  return {"largest_batch", found.predicted, text + "."};
}

}  // namespace lamina::bench
