#pragma once
// The one statistic of every race: a median, and an interval that is valid for any distribution of the noise.

#include <cstddef>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// A median with its interval.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

/// The least probability that an interval contains the true median. The number of samples below the median, among n
/// independent samples of any distribution, is binomial with p = 1/2.
constexpr double interval_level = 0.95;
constexpr std::size_t fewest_samples =
    6;  ///< fewest samples for that level: the interval from the least to the greatest of six has 96.9 %

/// The place of the interval's lower end among n sorted samples, counted from 1; the upper end has the same place from
/// the end. It is 2 for 9 samples, and 0 for fewer than `fewest_samples`.
LAMINA_API std::size_t interval_rank(std::size_t samples);

/// Needs at least one sample. With fewer than `fewest_samples` the interval goes from the least to the greatest.
LAMINA_API Interval median_interval(std::vector<double> samples);

/// The median of the ratios second[i] / first[i] of paired rounds: a disturbance of both sides of a round does not
/// change their ratio. Rounds of one side only do not count; at least one pair is needed. Two zeros have ratio 1.
LAMINA_API Interval ratio_interval(const std::vector<double>& first, const std::vector<double>& second);

}  // namespace lamina
