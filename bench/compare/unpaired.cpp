// The ratio of two runs' times, from the sorted ratios of all pairs of samples.

#include "unpaired.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lamina::bench {
namespace {

constexpr std::size_t exact_up_to = 25;

/// The distribution of Mann and Whitney's U for runs of n and m samples. Element u: the share of all orders of the
/// samples in which the second run's sample is in front in exactly u of the n * m pairs.
std::vector<double> order_shares(std::size_t n, std::size_t m) {
  // The counts for i samples of the first run follow from the counts for i - 1 samples.
  std::vector<std::vector<double>> counts(m + 1);  // [number of the second run's samples][u], for i of the first run
  for (std::size_t j = 0; j <= m; ++j) counts[j] = {1};
  for (std::size_t i = 1; i <= n; ++i) {
    std::vector<std::vector<double>> next(m + 1);
    next[0] = {1};
    for (std::size_t j = 1; j <= m; ++j) {
      // The last sample in the order is of the second run, or of the first run and behind all j of the second run.
      next[j].assign(i * j + 1, 0);
      for (std::size_t u = 0; u < counts[j].size(); ++u) next[j][u + j] += counts[j][u];
      for (std::size_t u = 0; u < next[j - 1].size(); ++u) next[j][u] += next[j - 1][u];
    }
    counts = std::move(next);
  }
  std::vector<double> shares = counts[m];
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

/// The ratios of all pairs, each found by its place in ascending order.
class Ratios {
 public:
  Ratios(std::vector<double> first, std::vector<double> second) : first_(std::move(first)), second_(std::move(second)) {
    std::sort(first_.begin(), first_.end());
    std::sort(second_.begin(), second_.end());
    if (count() > 10000 && first_.front() > 0 && second_.front() > 0) return;  // at() bisects
    for (const double a : first_)
      for (const double b : second_) all_.push_back(a == b ? 1 : b / a);
    std::sort(all_.begin(), all_.end());
  }

  std::size_t count() const { return first_.size() * second_.size(); }

  double at(std::size_t place) const {
    if (!all_.empty()) return all_[place];
    double low = second_.front() / first_.back(), high = second_.back() / first_.front();
    for (double middle = low + (high - low) / 2; low < middle && middle < high; middle = low + (high - low) / 2)
      (up_to(middle) > place ? high : low) = middle;
    return up_to(low) > place ? low : high;
  }

 private:
  /// The number of ratios that are at most `ratio`.
  std::size_t up_to(double ratio) const {
    std::size_t sum = 0, below = 0;
    for (const double a : first_) {
      while (below < second_.size() && second_[below] / a <= ratio) ++below;
      sum += below;
    }
    return sum;
  }

  std::vector<double> first_, second_, all_;
};

}  // namespace

double normal_quantile(double level) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(2.0)) < level ? low : high) = middle;
  }
  return low;
}

std::size_t unpaired_rank(std::size_t n, std::size_t m, double level) {
  if (n == 0 || m == 0) return 0;
  if (std::max(n, m) <= exact_up_to) {
    double below = 0;
    const std::vector<double> shares = order_shares(n, m);
    for (std::size_t rank = 0; 2 * rank < shares.size(); ++rank) {
      below += shares[rank];
      if (2 * below > 1 - level) return rank;
    }
    return 0;
  }
  const auto a = static_cast<double>(n), b = static_cast<double>(m);
  const double place = a * b / 2 - normal_quantile(level) * std::sqrt(a * b * (a + b + 1) / 12);
  return place < 1 ? 0 : static_cast<std::size_t>(place);
}

Interval unpaired_ratio_interval(const std::vector<double>& first, const std::vector<double>& second, double level) {
  const Ratios ratios(first, second);
  const std::size_t count = ratios.count(), half = count / 2;
  const std::size_t rank = std::max<std::size_t>(unpaired_rank(first.size(), second.size(), level), 1);
  const double middle = count % 2 == 1 ? ratios.at(half) : (ratios.at(half - 1) + ratios.at(half)) / 2;
  return {ratios.at(rank - 1), middle, ratios.at(count - rank)};
}

Interval inflate(const Interval& ratio, double times) {
  const double factor = std::sqrt(times);
  return {ratio.middle * std::pow(ratio.low / ratio.middle, factor), ratio.middle,
          ratio.middle * std::pow(ratio.high / ratio.middle, factor)};
}

double autocorrelation_factor(const std::vector<double>& samples) {
  const std::size_t n = samples.size();
  if (n < 4) return 1;
  // The correlation is of ranks (places), not of samples, so that a single long sample weighs no more than the others.
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  std::vector<double> places(n);
  for (std::size_t first = 0, end = 1; first < n; first = end++) {  // equal samples share the middle of their places
    while (end < n && samples[order[end]] == samples[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i)
      places[order[i]] = static_cast<double>(first + end - 1) / 2 - static_cast<double>(n - 1) / 2;
  }
  double squares = 0, neighbours = 0;
  for (std::size_t i = 0; i < n; ++i) {
    squares += places[i] * places[i];
    if (i > 0) neighbours += places[i] * places[i - 1];
  }
  if (squares == 0) return 1;
  // Even independent samples easily show a correlation of 1 / sqrt(n). So this much is subtracted.
  const double correlation = std::clamp(neighbours / squares - 1 / std::sqrt(static_cast<double>(n)), 0.0, 0.9);
  return (1 + correlation) / (1 - correlation);
}

std::size_t samples_to_resolve(double share, double spread, double level) {
  // The ratio of two means has the deviation spread * sqrt(2 / n). The median ratio has a deviation 2 % greater.
  const double reach = 1.02 * normal_quantile(level) * spread / share;
  return static_cast<std::size_t>(std::ceil(std::max(2 * reach * reach, 1.0)));
}

std::size_t pairs_to_resolve(double share, double spread, double level) {
  constexpr double of_median = 1.2533;  // deviation of the median of normal samples / deviation of their mean
  const double reach = of_median * normal_quantile(level) * spread / share;
  return static_cast<std::size_t>(std::ceil(std::max(reach * reach, 1.0)));
}

double robust_spread(std::vector<double> samples) {
  constexpr double of_normal = 1.349;  // distance between the quartiles of a normal distribution, in deviations
  constexpr double far = 5;            // distance, in deviations, beyond which a sample is of another machine state
  if (samples.size() < 2) return 0;
  std::sort(samples.begin(), samples.end());
  const auto all = static_cast<double>(samples.size());
  const std::size_t half = samples.size() / 2;
  std::size_t first = 0;  // start of the narrowest half
  for (std::size_t i = 0; i + half < samples.size(); ++i)
    if (samples[i + half] - samples[i] < samples[first + half] - samples[first]) first = i;
  const double reach = far * (samples[first + half] - samples[first]) / of_normal;
  const double center = (samples[first + half] + samples[first]) / 2;
  std::erase_if(samples, [&](double each) { return std::abs(each - center) > reach; });
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (place - static_cast<double>(below)) * (samples[above] - samples[below]);
  };
  if (samples.empty() || at(0.5) <= 0) return 0;
  // Only pairs of samples in the same state have ratios near the middle. The fewer such pairs, the wider the interval.
  const double here = static_cast<double>(samples.size()) / all;
  return (at(0.75) - at(0.25)) / of_normal / at(0.5) / (here * here + (1 - here) * (1 - here));
}

}  // namespace lamina::bench
