#pragma once
// The reports of trainings: a line for each epoch, time and cost of a run, the table of several runs. The progress on
// standard error: on a terminal a line that is overwritten, elsewhere a line every ten seconds. The file of trainings.

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

/// The cost as text: ", 0.000031 USD at 0.12 USD/h". It has at least four digits after the point, and enough for two
/// significant digits. Empty without a price.
std::string cost_text(double seconds, double usd_per_hour);

/// The seconds until the validation accuracy first reached a target; without validation, the training accuracy.
/// Negative: it did not reach the target.
double seconds_to(const std::vector<EpochResult>&, double target_accuracy);

/// The result of a training that ended or was interrupted.
struct Trained {
  std::string name, data;
  std::uint64_t seed = 0;
  std::int64_t samples = 0;  ///< number of samples in an epoch
  std::optional<Optimum> optimum{};
  std::vector<EpochResult> epochs{};
};

/// The line of an epoch. It ends in `data_note`, which names the data.
std::string epoch_line(const EpochResult&, int epochs, const std::string& data_note);

/// The lines after a training: seconds and dollars of all epochs, and until the target accuracy.
std::string summary(const TrainOptions&, const std::vector<EpochResult>&, const std::string& data_note);

/// The line after an interrupt: how the training can be resumed, or that it cannot.
std::string stopped_line(const TrainOptions&, std::size_t done, int epochs, const std::string& data_note);

/// A table with a row for each training.
TextTable trained_table(const std::vector<Trained>&);

/// The progress of a training: "epoch 3/20  [############        ]  61 %  25310 samples/s  2 s left; in all about 1 min
/// 5 s, of which 40 s are left". `seconds`, `batches`, `samples`: time and work since the training began or was
/// resumed.
std::string progress_line(const lamina::Progress&, std::uint64_t epochs, double seconds, std::int64_t batches,
                          std::int64_t samples);

/// Prints a progress line after a batch, if the last line is at least `pause` seconds old.
class TrainingScreen {
 public:
  TrainingScreen(std::uint64_t epochs, double pause, Print print)
      : epochs_(epochs), pause_(pause), print_(std::move(print)) {}
  void batch_done(const lamina::Progress&);

 private:
  std::uint64_t epochs_;
  double pause_;
  Print print_;
  double shown_ = steady_seconds();          ///< time of the last line; before the first line, time of the start
  double begun_ = 0;                         ///< time at which the first batch ended
  std::int64_t batches_ = -1, samples_ = 0;  ///< batches and samples after the first batch; -1: no batch has ended
};

/// The number of samples in an epoch of training.
std::int64_t samples_of(const PreparedWorkload&);

class Record {
 public:
  /// The file is TrainOptions::json. If it is empty, a Record does nothing.
  Record(const TrainOptions&, Backends&);

  /// Begins a training. `before`: epochs of the checkpoint from which it resumes; their processor time is not known.
  /// `onnx`: file of the network; null: the network has no file.
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
