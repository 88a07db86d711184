#pragma once
// What a training costs, when it reached a target, and its log.

#include <string>
#include <vector>

#include "lamina/train.h"

namespace lamina::bench {

/// ", 0.000031 USD at 0.12 USD/h": at least four digits after the point, and two that are not 0. Empty without a price.
std::string cost_text(double seconds, double usd_per_hour);

/// Seconds until the validation accuracy, or the training's where there is none, first reached a target; negative if it
/// did not.
double seconds_to(const std::vector<EpochResult>&, double target_accuracy);

/// The columns of the posts' logs: epoch,elapsed,loss,acc,val_loss,val_acc. Empty where there is no validation.
std::string run_csv(const std::vector<EpochResult>&);

}  // namespace lamina::bench
