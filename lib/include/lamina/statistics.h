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

/// The least probability that an interval contains the true median. The number of n independent samples below the
/// median is binomial with p = 1/2, whatever their distribution.
constexpr double interval_level = 0.95;
constexpr std::size_t fewest_samples =
    6;  ///< for an interval of that level: it goes from the least to the greatest of six, at 96.9 %

/// The place of the interval's lower end among n sorted samples, counted from 1; the upper end is as far from the last.
/// For 9 it is 2. 0 for fewer than `fewest_samples`.
LAMINA_API std::size_t interval_rank(std::size_t samples);

/// Needs a sample. For fewer than `fewest_samples` the ends are the least and the greatest.
LAMINA_API Interval median_interval(std::vector<double> samples);

/// The median of the ratios second[i] / first[i] of paired rounds: what slows both sides of a round does not change its
/// ratio. Only rounds that both have count; at least one is needed. Two zeros have ratio 1.
LAMINA_API Interval ratio_interval(const std::vector<double>& first, const std::vector<double>& second);

}  // namespace lamina
