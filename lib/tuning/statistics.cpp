// Medians with intervals from the order of the samples.

#include "lamina/statistics.h"

#include <algorithm>
#include <cmath>

namespace lamina {

std::size_t interval_rank(std::size_t samples) {
  const auto n = static_cast<double>(samples);
  double below = 0;  // the probability that at most `rank` samples are below the true median
  for (std::size_t rank = 0; 2 * rank <= samples; ++rank) {
    const auto k = static_cast<double>(rank);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
    if (2 * below > 1 - interval_level) return rank;
  }
  return 0;
}

Interval median_interval(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size(), half = count / 2;
  const std::size_t rank = std::max<std::size_t>(interval_rank(count), 1);
  const double middle = count % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {samples[rank - 1], middle, samples[count - rank]};
}

Interval ratio_interval(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> ratios(std::min(first.size(), second.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = first[i] == second[i] ? 1 : second[i] / first[i];
  return median_interval(std::move(ratios));
}

}  // namespace lamina
