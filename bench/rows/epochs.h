#pragma once
// Epochs of a training as rows: their fields, for `run` and for `train --json`.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/machine/energy.h"
#include "bench/measure/row_key.h"
#include "lamina/workloads.h"

namespace lamina::bench {

/// Samples of an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

/// What an epoch's row has besides its time: epoch, samples, samples_per_second (while it trains, not validates), loss,
/// accuracy, validation_loss, validation_accuracy, validation_seconds. What was not measured is left out.
std::map<std::string, double> epoch_fields(const EpochResult&, std::int64_t samples);

/// Adds "joules" and "joules_window_s", or "joules_missing", the reason; nothing of what was not asked for.
void add_joules(nlohmann::ordered_json&, const std::optional<MeasuredEnergy>&);

/// What is known of an epoch besides its result.
struct EpochFacts {
  double cpu_seconds = 0;                  ///< 0: not known
  std::optional<MeasuredEnergy> energy{};  ///< none: not asked for
};

/// An epoch as a row of the result file.
nlohmann::ordered_json epoch_row(const RowKey&, const EpochResult&, const EpochFacts&, std::int64_t samples, int epochs,
                                 const std::string& data);

}  // namespace lamina::bench
