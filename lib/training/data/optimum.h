#pragma once
// The accuracy and loss of the best classifier, estimated from posteriors.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lamina/synthetic.h"

namespace lamina {

/// The means of the largest posterior and of the posterior's entropy, with 99 % intervals. Given the sample, they have
/// the same expectations as the share of right answers and the mean of -ln p(label), and vary less.
class OptimumEstimate {
 public:
  void add(std::span<const double> posterior) {
    double largest = 0, entropy = 0;
    for (const double p : posterior) {
      largest = p > largest ? p : largest;
      if (p > 0) entropy -= p * std::log(p);
    }
    ++count_;
    accuracy_.add(largest, count_);
    loss_.add(entropy, count_);
  }

  Optimum result() const { return {accuracy_.mean, accuracy_.margin(count_), loss_.mean, loss_.margin(count_)}; }

 private:
  struct Mean {
    double mean = 0, squares = 0;  // mean, and sum of the squared differences from it (Welford)
    void add(double value, std::int64_t count) {
      const double before = value - mean;
      mean += before / static_cast<double>(count);
      squares += before * (value - mean);
    }
    double margin(std::int64_t count) const {
      constexpr double normal_99 = 2.5758293035489004;  // 99 % of a normal distribution are within it
      const auto n = static_cast<double>(count);
      return normal_99 * std::sqrt(squares / (n - 1) / n);
    }
  };

  std::int64_t count_ = 0;
  Mean accuracy_, loss_;
};

/// The result of posteriors on labels: share of right answers and mean of -ln p(label).
class Reached {
 public:
  void add(std::span<const double> posterior, std::size_t label) {
    const auto largest = std::max_element(posterior.begin(), posterior.end());
    right_ += static_cast<std::size_t>(largest - posterior.begin()) == label ? 1 : 0;
    loss_ -= std::log(posterior[label]);
    ++count_;
  }
  Optimum result() const { return {.accuracy = right_ / count_, .loss = loss_ / count_}; }

 private:
  double right_ = 0, loss_ = 0, count_ = 0;
};

/// Throws UsageError for fewer samples than `least`, or a negative count.
void check_samples(std::int64_t samples, std::int64_t least, const char* what);

}  // namespace lamina
