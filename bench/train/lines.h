#pragma once
// What is printed of trainings: a line for each epoch, what a run took and costs, the table of several; and the log.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/io/text.h"
#include "lamina/workloads.h"
#include "train.h"

namespace lamina::bench {

/// ", 0.000031 USD at 0.12 USD/h": at least four digits after the point, and two that are not 0. Empty without a price.
std::string cost_text(double seconds, double usd_per_hour);

/// Seconds until the validation accuracy, or the training's where there is none, first reached a target; negative if it
/// did not.
double seconds_to(const std::vector<EpochResult>&, double target_accuracy);

/// The columns of the posts' logs: epoch,elapsed,loss,acc,val_loss,val_acc. Empty where there is no validation.

/// A training that ended, or was interrupted.
struct Trained {
  std::string name, data;
  std::uint64_t seed = 0;
  std::int64_t samples = 0;  ///< of an epoch
  std::optional<Optimum> optimum{};
  std::vector<EpochResult> epochs{};
};

/// `data_note` ends every line.
std::string epoch_line(const EpochResult&, int epochs, const std::string& data_note);

/// Seconds and dollars, to the last epoch and to the target.
std::string summary(const TrainOptions&, const std::vector<EpochResult>&, const std::string& data_note);

/// How an interrupted training goes on, or that it does not.
std::string stopped_line(const TrainOptions&, std::size_t done, int epochs, const std::string& data_note);

/// A row for each.
TextTable trained_table(const std::vector<Trained>&);

}  // namespace lamina::bench
