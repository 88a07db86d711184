#pragma once
// The reports of trainings: a line for each epoch, time and cost of a run, the table of several; their progress on
// standard error (a line that is written over on a terminal, elsewhere a line in ten seconds); and their file.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/context/context.h"
#include "bench/measure/row_key.h"
#include "lamina/train.h"
#include "train.h"

namespace lamina::bench {

/// ", 0.000031 USD at 0.12 USD/h": at least four digits after the point, and two that are not 0. Empty without a price.
std::string cost_text(double seconds, double usd_per_hour);

/// Seconds until the validation accuracy, or the training's where there is none, first reached a target; negative if it
/// did not.
double seconds_to(const std::vector<EpochResult>&, double target_accuracy);

/// A training that ended, or was interrupted.
struct Trained {
  std::string name, data;
  std::uint64_t seed = 0;
  std::int64_t samples = 0;  ///< samples of an epoch
  std::optional<Optimum> optimum{};
  std::vector<EpochResult> epochs{};
};

/// `data_note` ends every line.
std::string epoch_line(const EpochResult&, int epochs, const std::string& data_note);

/// Seconds and dollars, to the last epoch and to the target.
std::string summary(const TrainOptions&, const std::vector<EpochResult>&, const std::string& data_note);

/// Says how an interrupted training goes on, or that it does not.
std::string stopped_line(const TrainOptions&, std::size_t done, int epochs, const std::string& data_note);

/// A table with a row for each training.
TextTable trained_table(const std::vector<Trained>&);

/// "epoch 3/20  [############        ]  61 %  25310 samples/s  2 s left; in all about 1 min 5 s, of which 40 s are
/// left". `seconds`, `batches` and `samples`: time and work since the training began or was resumed.
std::string progress_line(const lamina::Progress&, std::uint64_t epochs, double seconds, std::int64_t batches,
                          std::int64_t samples);

/// Writes a line after a batch, if the last line is `pause` seconds old.
class TrainingScreen {
 public:
  TrainingScreen(std::uint64_t epochs, double pause, Print print)
      : epochs_(epochs), pause_(pause), print_(std::move(print)) {}
  void batch_done(const lamina::Progress&);

 private:
  std::uint64_t epochs_;
  double pause_;
  Print print_;
  double shown_ = steady_seconds();          ///< time of the last line, at first of the start
  double begun_ = 0;                         ///< time of the end of the first batch
  std::int64_t batches_ = -1, samples_ = 0;  ///< batches and samples since the first batch; -1: none at all
};

/// Samples of an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

class Record {
 public:
  /// Does nothing without options.json.
  Record(const TrainOptions&, Backends&);

  /// `before` has the epochs of the checkpoint that the training goes on from; their processor time is not known.
  /// `onnx` is the file of the network; null: none.
  void begin(const std::string& name, const std::filesystem::path* onnx, const PreparedWorkload&, const TrainOptions&,
             int epochs, const std::vector<EpochResult>& before);
  void epoch_done(const EpochResult&, double cpu_seconds);
  void trained() { results_.try_to_save(); }           ///< saves the file when a training ends or is interrupted
  void end() { finish(results_, Peaks(*backends_)); }  ///< throws FileError

 private:
  Backends* backends_;
  ResultFile results_;
  std::string rerun_;
  RowKey key_{};
  std::string data_{};
  std::int64_t samples_ = 0;
  int epochs_ = 0;
};

}  // namespace lamina::bench
