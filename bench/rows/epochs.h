#pragma once
// Epochs of a training as rows: their fields, for `run` and for `train --json`.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure/row_key.h"
#include "lamina/workloads.h"

namespace lamina::bench {

/// Samples of an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

/// What an epoch's row has besides its time: epoch, samples, samples_per_second (while it trains, not validates), loss,
/// accuracy, validation_loss, validation_accuracy, validation_seconds. What was not measured is left out.
std::map<std::string, double> epoch_fields(const EpochResult&, std::int64_t samples);

/// An epoch as a row of the result file.
nlohmann::ordered_json epoch_row(const RowKey&, const EpochResult&, double cpu_seconds, std::int64_t samples,
                                 int epochs, const std::string& data);

}  // namespace lamina::bench
