#pragma once
// Whether several trainings of a workload, each with its own seed, meet the published results.

#include <string>
#include <vector>

#include "lamina/workloads.h"

namespace lamina::bench {

struct SeedsVerdict {
  bool accepted = false;
  std::vector<std::string> lines{};  ///< of each run, then one of all
};

/// Each run is judged by the bands; two of three, or as large a share of another number, must be in them. Throws
/// UsageError where there is no run, or one has another number of epochs than the workload.
SeedsVerdict judge_seeds(const Workload&, const std::vector<std::vector<EpochResult>>& runs);

}  // namespace lamina::bench
