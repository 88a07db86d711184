#pragma once
// The one statistic of every race: a median, and an interval that holds for any distribution of the noise.

#include <cstddef>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// A median with its interval.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

/// The probability, at least, that an interval holds the true median. How many of n independent samples lie below it is
/// binomial with p = 1/2, whatever their distribution.
constexpr double interval_level = 0.95;
constexpr std::size_t fewest_samples =
    6;  ///< with an interval of that level: the least and the greatest of six, 96.9 %

/// The place of the interval's lower end among n samples in order, counted from 1; its upper end is as far from the
/// other end. 2 of 9. 0: fewer than `fewest_samples`.
LAMINA_API std::size_t interval_rank(std::size_t samples);

/// Needs a sample. Of fewer than `fewest_samples`, the least and the greatest stand for the ends.
LAMINA_API Interval median_interval(std::vector<double> samples);

/// Of the ratios second[i] / first[i] of paired rounds: what disturbs both sides of a round is in no ratio. As many
/// rounds count as both have, of which there must be one. Two zeros have ratio 1.
LAMINA_API Interval ratio_interval(const std::vector<double>& first, const std::vector<double>& second);

}  // namespace lamina
