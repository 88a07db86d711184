// Not beaten in time, workspace and error together.

#include "pareto.h"

#include <algorithm>

namespace lamina::bench {
namespace {

/// 0: tied. Who left the race was clearly slower than its best, in rounds that may be too few to show it again.
int by_time(const Measurement& a, const Measurement& b) {
  const Interval ratio = ratio_interval(b.seconds, a.seconds);
  if (ratio.high < 1) return -1;
  if (ratio.low > 1) return 1;
  return static_cast<int>(b.finished) - static_cast<int>(a.finished);
}

}  // namespace

bool is_deterministic(const Measurement& one) { return one.deterministic && one.same_bits; }

bool within(const Measurement& one, const Limits& limits) {
  return one.workspace_bytes <= limits.workspace_bytes && one.error <= limits.max_error &&
         (is_deterministic(one) || !limits.deterministic);
}

LayerTuning::Picked pick_within(const LayerTuning& tuning, const Limits& limits) {
  return pick(tuning.candidates, [&](const Candidate& one) { return within(one.measured, limits); });
}

bool dominates(const Measurement& a, const Measurement& b) {
  if (a.workspace_bytes > b.workspace_bytes || !(a.error <= b.error)) return false;
  if (is_deterministic(b) && !is_deterministic(a)) return false;
  if (const int order = by_time(a, b); order != 0) return order < 0;
  return a.workspace_bytes < b.workspace_bytes || a.error < b.error || (is_deterministic(a) && !is_deterministic(b));
}

std::vector<bool> not_beaten(const std::vector<Candidate>& candidates) {
  std::vector<bool> stays;
  for (const Candidate& one : candidates)
    stays.push_back(one.ran() && std::none_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
                      return other.ran() && dominates(other.measured, one.measured);
                    }));
  return stays;
}

}  // namespace lamina::bench
