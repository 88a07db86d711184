#pragma once
// The file of train --json: epochs as rows, and what each training is.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/context/context.h"
#include "bench/machine/backends.h"
#include "bench/measure/row_key.h"
#include "lamina/workloads.h"
#include "train.h"

namespace lamina::bench {

/// Samples of an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

/// What an epoch's row has besides its time: epoch, samples, samples_per_second (while it trains, not validates), loss,
/// accuracy, validation_loss, validation_accuracy, validation_seconds. What was not measured is left out.
std::map<std::string, double> epoch_fields(const EpochResult&, std::int64_t samples);

class Record {
 public:
  /// Does nothing without options.json.
  Record(const TrainOptions&, Backends&);

  /// `before`: epochs of the checkpoint that the training goes on from, whose processor time is not known.
  /// `onnx`: the file of the network; null: none.
  void begin(const std::string& name, const std::filesystem::path* onnx, const PreparedWorkload&, const TrainOptions&,
             std::uint64_t seed, int epochs, const std::vector<EpochResult>& before);
  void epoch_done(const EpochResult&, double cpu_seconds);
  void trained() { results_.try_to_save(); }  ///< says that the training has ended, or was interrupted
  /// Throws FileError.
  void end();

 private:
  void add(const EpochResult&, double cpu_seconds);

  Backends* backends_;
  Results results_;
  std::string rerun_;
  RowKey key_{};
  std::string data_{};
  std::int64_t samples_ = 0;
  int epochs_ = 0;
};

}  // namespace lamina::bench
