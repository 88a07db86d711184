#pragma once
// The accuracy and loss of the best classifier, estimated from posteriors.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lamina/synthetic.h"

namespace lamina {

/// A mean that grows by Welford's method.
struct GrowingMean {
  double mean = 0, squares = 0;  ///< mean, and sum of the squared differences from it
  double count = 0;
  void add(double value) {
    const double before = value - mean;
    mean += before / ++count;
    squares += before * (value - mean);
  }
  /// 99 % of such means are within this distance of the expectation.
  double margin() const {
    constexpr double normal_99 = 2.5758293035489004;  // 99 % of a normal distribution are within it
    return normal_99 * std::sqrt(squares / (count - 1) / count);
  }
};

/// The means of the largest posterior and of the posterior's entropy, with 99 % intervals; posterior(i) is the
/// posterior of sample i. These means have the same expectations as the share of right answers and the mean of -ln
/// p(label), and vary less.
template <class Posterior>
Optimum estimated_optimum(std::int64_t samples, const Posterior& posterior) {
  GrowingMean accuracy, loss;
  for (std::int64_t i = 0; i < samples; ++i) {
    double largest = 0, entropy = 0;
    for (const double p : posterior(i)) {
      largest = p > largest ? p : largest;
      if (p > 0) entropy -= p * std::log(p);
    }
    accuracy.add(largest);
    loss.add(entropy);
  }
  return {accuracy.mean, accuracy.margin(), loss.mean, loss.margin()};
}

/// The result of posteriors on labels: share of right answers and mean of -ln p(label).
template <class Posterior>
Optimum reached_optimum(const std::vector<std::uint8_t>& labels, const Posterior& posterior) {
  double right = 0, loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto p = posterior(static_cast<std::int64_t>(i));
    right += std::max_element(p.begin(), p.end()) - p.begin() == labels[i] ? 1 : 0;
    loss -= std::log(p[labels[i]]);
  }
  const auto count = static_cast<double>(labels.size());
  return {.accuracy = right / count, .loss = loss / count};
}

/// Throws UsageError for fewer samples than `least`, or a negative count.
void check_samples(std::int64_t samples, std::int64_t least, const char* what);

}  // namespace lamina
