// Not beaten in time, workspace and error together.

#include "pareto.h"

#include <algorithm>

namespace lamina::bench {
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
