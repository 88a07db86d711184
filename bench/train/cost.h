#pragma once
// What a training costs: published epoch times, dated prices of machines, dollars.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/io/text_table.h"
#include "lamina/train.h"

namespace lamina::bench {

/// A line of a file of prices: source,date,configuration,usd_per_hour,note. Without a date: as given; 0: none.
struct Price {
  std::string date{}, configuration{};
  double usd_per_hour = 0;
};

/// The newest price of a configuration. Throws FileError for a file of another form, UsageError with near names.
Price price_of(const std::filesystem::path&, const std::string& configuration);

double usd(double seconds, double usd_per_hour);

/// ", 0.000031 USD at 0.12 USD/h of 2017-11": at least four digits after the point, and two that are not 0. Empty
/// without a price.
std::string cost_text(double seconds, const Price&);

/// A platform of the posts, and what it cost when they were written.
struct Platform {
  std::string_view name;   ///< as in published/trainings.csv
  std::string_view title;  ///< "K80, TensorFlow 1.4"
  double usd_per_hour;
};
const std::vector<Platform>& platforms();  ///< the first is what the others are compared with

/// Seconds of each epoch, validation included, of a workload on a platform. Throws UsageError if there is none.
std::vector<double> published_epochs(std::string_view workload, std::string_view platform);

/// Of a workload on a platform, over those of the first platform: total seconds, total dollars.
struct Relative {
  double time, cost;
};
Relative relative(std::string_view workload, const Platform&);

/// Seconds and dollars of the posts for a workload, one row for each platform.
TextTable published_table(std::string_view workload);

/// Seconds until the validation accuracy, or the training's where there is none, first reached a target; negative if it
/// did not.
double seconds_to(const std::vector<EpochResult>&, double target_accuracy);

/// The columns of the posts' logs: epoch,elapsed,loss,acc,val_loss,val_acc. Empty where there is no validation.
std::string run_csv(const std::vector<EpochResult>&);

}  // namespace lamina::bench
