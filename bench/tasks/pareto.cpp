// Not beaten in time, workspace and error together.

#include "pareto.h"

#include <algorithm>
#include <cmath>

namespace lamina::bench {
namespace {

/// Of samples in order, the place of the last that the median lies above or at with a probability of 97.5 %: how many
/// samples lie below it is binomial with p = 1/2.
std::size_t place_below_median(std::size_t samples) {
  const auto n = static_cast<double>(samples);
  double probability = 0;  // that no more than k samples lie below the median
  for (std::size_t k = 0; 2 * k < samples; ++k) {
    const auto below = static_cast<double>(k);
    probability +=
        std::exp(std::lgamma(n + 1) - std::lgamma(below + 1) - std::lgamma(n - below + 1) - n * std::log(2.0));
    if (probability > 0.025) return k > 0 ? k - 1 : 0;
  }
  return 0;
}

}  // namespace

Interval median_interval(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size(), half = count / 2, low = place_below_median(count);
  const double middle = count % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {samples[low], middle, samples[count - 1 - low]};
}

bool tied(const Interval& a, const Interval& b) { return a.low <= b.high && b.low <= a.high; }

bool within(const Offer& offer, const Limits& limits) {
  return offer.workspace_bytes <= limits.workspace_bytes && offer.error <= limits.max_error &&
         (offer.deterministic || !limits.deterministic);
}

bool beats(const Offer& a, const Offer& b) {
  if (a.workspace_bytes > b.workspace_bytes || !(a.error <= b.error)) return false;
  if (b.deterministic && !a.deterministic) return false;
  if (!tied(a.seconds, b.seconds)) return a.seconds.middle < b.seconds.middle;
  return a.workspace_bytes < b.workspace_bytes || a.error < b.error || (a.deterministic && !b.deterministic);
}

std::vector<bool> not_beaten(const std::vector<Offer>& offers) {
  std::vector<bool> stays;
  for (const Offer& offer : offers)
    stays.push_back(
        std::none_of(offers.begin(), offers.end(), [&](const Offer& other) { return beats(other, offer); }));
  return stays;
}

std::optional<std::size_t> fastest(const std::vector<Offer>& offers, const Limits& limits) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (within(offers[i], limits) && (!best || offers[i].seconds.middle < offers[*best].seconds.middle)) best = i;
  return best;
}

std::vector<std::size_t> tied_with(const std::vector<Offer>& offers, const Limits& limits, std::size_t best) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (i != best && within(offers[i], limits) && tied(offers[i].seconds, offers[best].seconds)) others.push_back(i);
  return others;
}

}  // namespace lamina::bench
