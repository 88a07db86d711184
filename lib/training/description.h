#pragma once
// The description of a run, as text: everything that must be the same when it resumes from a checkpoint.

#include <cstdint>
#include <string>

#include "lamina/train.h"

namespace lamina::training {

/// Parts with ", " between them. `samples` is the number in an epoch, `batch` the global batch of all ranks. Calls the
/// schedule up to 2^40 and reads up to eight samples.
std::string describe_run(const Plan&, const TrainerOptions&, const Source&, std::int64_t samples, int batch);

}  // namespace lamina::training
