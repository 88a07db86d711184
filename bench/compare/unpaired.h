#pragma once
// The statistic for runs that took no turns: no round of one belongs to a round of the other.

#include <cstddef>
#include <vector>

#include "lamina/statistics.h"

namespace lamina::bench {

/// The place of the interval's lower end among the sorted ratios of all pairs of `first` and `second` samples, counted
/// from 1; the upper end is as far from the last. It follows from the ranks of Mann and Whitney, exactly up to 25
/// samples a run and by the normal distribution above. 0: too few samples for an interval of this level.
std::size_t unpaired_rank(std::size_t first, std::size_t second, double level = interval_level);

/// The median of the ratios second[j] / first[i] of all pairs, with its interval (Hodges and Lehmann). It holds for any
/// distribution of the noise, if the noise is the same in both runs up to the ratio, and if samples are independent.
/// Each run needs a sample. With too few samples for this level, the ends are the least and the greatest ratio.
Interval unpaired_ratio_interval(const std::vector<double>& first, const std::vector<double>& second,
                                 double level = interval_level);

/// The interval that `times` times fewer samples would give.
Interval inflate(const Interval& ratio, double times);

/// The number of samples that say as much as one independent sample, where each resembles the one before it. 1 for
/// independent samples. With this many times as many samples, an interval is as wide as with independent ones.
double autocorrelation_factor(const std::vector<double>& samples);

/// The samples that each of two runs needs for an interval whose ends are at most `share` from its middle. `spread` is
/// the samples' deviation as a share of their median.
std::size_t samples_to_resolve(double share, double spread, double level = interval_level);

/// The rounds that two variants in turns need for such an interval. `spread` is that of the rounds' ratios.
std::size_t pairs_to_resolve(double share, double spread, double level = interval_level);

/// The samples' deviation as a share of their median. It comes from the samples of the machine's most common state, so
/// a machine at half its speed for a while does not widen it. The share of samples in other states then widens it as
/// much as it widens the interval of the ratio.
double robust_spread(std::vector<double> samples);

/// The distance from the mean, in deviations, within which a normal number is with this probability.
double normal_quantile(double level);

}  // namespace lamina::bench
