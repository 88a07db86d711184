#pragma once
// What rows of epochs have.

#include <cstdint>
#include <map>
#include <string>

#include "lamina/workloads.h"

namespace lamina::bench {

/// Samples of an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

/// What an epoch's row has besides its time: epoch, samples, samples_per_second (while it trains, not validates), loss,
/// accuracy, validation_loss, validation_accuracy, validation_seconds. What was not measured is left out.
std::map<std::string, double> epoch_fields(const EpochResult&, std::int64_t samples);

}  // namespace lamina::bench
