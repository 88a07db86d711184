#pragma once
// What must be the same in a run that goes on from a checkpoint, as text.

#include <cstdint>
#include <string>

#include "lamina/train.h"

namespace lamina::training {

/// Parts with ", " between them. `samples`: of an epoch; `batch`: of all ranks. Calls the schedule up to 2^40 and reads
/// up to eight samples.
std::string describe_run(const Plan&, const TrainerOptions&, const Source&, std::int64_t samples, int batch);

}  // namespace lamina::training
