#pragma once
// What must be the same in a run that goes on from a checkpoint, as text.

#include <cstdint>
#include <string>

#include "lamina/train.h"

namespace lamina::training {

/// Parts with ", " between them. `samples`: of an epoch. Calls the schedule up to 2^40 and reads up to eight samples.
std::string describe_run(const Plan&, const TrainerOptions&, const Source&, std::int64_t samples, int batch);

/// Where two descriptions differ, in words: "it has seed 0, and this run seed 1".
std::string difference(const std::string& of_file, const std::string& of_run);

}  // namespace lamina::training
