// Whether several trainings of a workload meet the published results.

#include "seeds.h"

#include <fmt/format.h>

#include "lamina/error.h"

namespace lamina::bench {

SeedsVerdict judge_seeds(const Workload& workload, const std::vector<std::vector<EpochResult>>& runs) {
  if (runs.empty()) throw UsageError("there is no training to judge");
  SeedsVerdict all;
  std::size_t good = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Judgement one = judge(workload, runs[i]);
    for (const std::string& line : one.lines)
      all.lines.push_back(runs.size() > 1 ? fmt::format("run {}: {}", i + 1, line) : line);
    good += one.accepted ? 1 : 0;
  }
  const std::size_t needed = (2 * runs.size() + 2) / 3;  // two thirds, rounded up
  all.accepted = good >= needed;
  all.lines.push_back(fmt::format("{} of {} in the published bands, {} needed: {}", good, runs.size(), needed,
                                  all.accepted ? "accepted" : "NOT accepted"));
  return all;
}

}  // namespace lamina::bench
