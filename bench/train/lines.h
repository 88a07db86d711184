#pragma once
// What is printed of trainings: a line for each epoch, what a run took, the table of several.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/io/text_table.h"
#include "bench/machine/energy.h"
#include "cost.h"
#include "lamina/workloads.h"
#include "train.h"

namespace lamina::bench {

/// A training that ended, or was interrupted.
struct Trained {
  std::string name, data;
  std::uint64_t seed = 0;
  std::int64_t samples = 0;  ///< of an epoch
  std::optional<Optimum> optimum{};
  std::vector<EpochResult> epochs{};
};

/// With joules, where there are any. `data_note` ends every line.
std::string epoch_line(const EpochResult&, int epochs, const std::optional<MeasuredEnergy>&,
                       const std::string& data_note);

/// Seconds and dollars, to the last epoch and to the target, and joules of this run.
std::string summary(const TrainOptions&, const std::vector<EpochResult>&, const std::optional<MeasuredEnergy>&,
                    const std::string& data_note);

/// How an interrupted training goes on, or that it does not.
std::string stopped_line(const TrainOptions&, std::size_t done, int epochs, const std::string& data_note);

/// A row for each.
TextTable trained_table(const std::vector<Trained>&);

}  // namespace lamina::bench
