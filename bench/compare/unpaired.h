#pragma once
// The statistic for two runs that did not take turns, so a sample of one run has no partner in the other run.

#include <cstddef>
#include <vector>

#include "lamina/statistics.h"

namespace lamina::bench {

/// The place of the interval's lower end among the sorted ratios of all pairs, counted from 1, for runs of `n` and `m`
/// samples. The upper end has the same place counted from the last. The place follows from the test of Mann and
/// Whitney: exactly up to 25 samples a run, by the normal distribution above. 0: too few samples for an interval of
/// this level.
std::size_t unpaired_rank(std::size_t n, std::size_t m, double level = interval_level);

/// The median of the ratios second[j] / first[i] of all pairs, with its interval (Hodges and Lehmann). The interval is
/// valid for any distribution of the noise, if both runs have the same distribution apart from the ratio, and if
/// samples are independent. Each run needs a sample. With too few samples for this level, the ends are the extreme
/// ratios.
Interval unpaired_ratio_interval(const std::vector<double>& first, const std::vector<double>& second,
                                 double level = interval_level);

/// The interval, widened to the width that it would have with 1 / `times` as many samples.
Interval inflate(const Interval& ratio, double times);

/// The number of samples that say as much as one independent sample, if each sample resembles the sample before it. 1
/// for independent samples. An interval of the same width needs more samples by this factor.
double autocorrelation_factor(const std::vector<double>& samples);

/// The number of samples that each of two runs needs for an interval whose ends are at most `share` from the middle.
/// `spread` is the samples' deviation as a share of their median.
std::size_t samples_to_resolve(double share, double spread, double level = interval_level);

/// The number of rounds that two variants in turns need for such an interval. `spread`: spread of the rounds' ratios.
std::size_t pairs_to_resolve(double share, double spread, double level = interval_level);

/// The samples' deviation as a share of their median. It is measured on the samples of the machine's most common state,
/// so samples from a while at half the speed do not count as scatter. Then it is increased by the factor by which such
/// samples of other states widen the interval of the ratio.
double robust_spread(std::vector<double> samples);

/// The distance from the mean, in deviations, within which a normal variable lies with the probability `level`.
double normal_quantile(double level);

}  // namespace lamina::bench
