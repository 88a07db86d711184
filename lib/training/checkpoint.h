#pragma once
// Everything that a training needs to go on, as a safetensors file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lamina/train.h"

namespace lamina::training {

/// What a run has besides its plan.
struct RunState {
  std::string description;            ///< of what must be the same when it goes on
  std::uint64_t epoch = 0;            ///< the present one
  std::int64_t batch = 0;             ///< the next of it
  double seconds = 0;                 ///< of the present epoch
  std::vector<Score> scores;          ///< of its batches
  std::vector<EpochResult> complete;  ///< the epochs before it
};

/// Writes the file as a whole or not at all. Waits for the device. Throws FileError, and Error if a parameter
/// or a running statistic is not finite.
void save_checkpoint(const std::filesystem::path&, const Plan&, const RunState&);

/// Throws FileError for a file that is no checkpoint of this plan, UsageError if its description is another one. The
/// plan is unchanged after an error.
RunState load_checkpoint(const std::filesystem::path&, Plan&, const std::string& description);

}  // namespace lamina::training
