#pragma once
// The subcommand `train`: trains the six workloads, networks of the zoo and ONNX files, and reports seconds and
// dollars.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/machine/backends.h"
#include "lamina/workloads.h"

namespace CLI {
class App;
}

namespace lamina::bench {

struct TrainOptions : PlanningSettings {
  std::vector<std::string> names{};  ///< names of workloads, of networks of the zoo (with `data`), and of ONNX files
  std::string backend = "eigen";
  DType dtype = DType::f32;
  int epochs = 0;                ///< number of epochs; 0: as published for a workload, else 10
  std::filesystem::path data{};  ///< folder of the real files; empty: a synthetic set
  double share = 1;              ///< size of the synthetic set, relative to the published set
  std::uint64_t seed = 0;
  std::uint64_t seeds = 1;   ///< number of trainings of each name, with consecutive seeds from `seed` on
  int batch = 0;             ///< batch over all ranks for a network that is no workload; 0: 32
  std::string optimiser{};   ///< optimiser of a network that is no workload; empty: adam
  double learning_rate = 0;  ///< rate for a network that is no workload; 0: the optimiser's default
  TableUpdates table_updates = TableUpdates::dense;
  bool synchronised_batch_norm = false;
  int loader_threads = 1;
  std::filesystem::path json{};         ///< file of the epochs as rows; empty: none
  std::filesystem::path checkpoint{};   ///< checkpoint file; empty: none
  std::int64_t checkpoint_updates = 0;  ///< updates between checkpoints within an epoch; 0: only after epochs
  double usd_per_hour = 0;              ///< price of the machine; 0: not known
  double target = 0;                    ///< accuracy whose seconds and dollars are reported, too; 0: none
};

void add_train_flags(CLI::App&, TrainOptions&);
Differs training_differs(const TrainOptions&);                 ///< settings that are not the defaults, for keys
std::vector<std::string> training_words(const TrainOptions&);  ///< flags of the command that repeats the training

/// Prepares a training of a network of the zoo on the images of the folder `data`. Uses the seed, and the options for
/// networks that are no workloads.
///
/// The network is built for the images and classes of the folder, with softmax cross entropy on its logits. The last
/// batch of an epoch is dropped unless it is full. Images are not augmented. Throws UsageError (unknown network, images
/// that do not fit it), FileError (missing or damaged files), ShapeError (images too small for the network).
PreparedWorkload prepare_network(const std::string& name, const TrainOptions&);

/// The training of a network in an ONNX file, as it is, from the file's weights. A softmax at its end becomes part of
/// the loss; the rest is as in prepare_network. Without a folder it is trained on synthetic glyphs of the input's size:
/// 50,000 for training and 10,000 for validation at share 1, fewer if training images would take more than 256 MiB.
struct PreparedFile {
  PreparedWorkload training;
  TensorFile weights;  ///< weights for the training's plan
};

/// Prepares a training of a network in an ONNX file. Throws UsageError (the network does not map an image to one row of
/// logits, or the images do not fit it), FileError, and what read_onnx throws.
PreparedFile prepare_file(const std::filesystem::path& onnx, const TrainOptions&);

/// Throws what prepare_file throws because of the network. Images are neither read nor drawn.
void check_file(const std::filesystem::path& onnx, const TrainOptions&);

/// Runs all trainings, one after another. Prints a line for each epoch, then time and cost, and at the end a table of
/// all trainings. Progress goes to standard error: on a terminal a line that is overwritten, elsewhere a line every ten
/// seconds. Writes the files of the options. After an interrupt, ends after the running batch. Several processes of
/// mpirun train together: only rank 0 prints and writes, and a failure in one ends all of them. Gives the exit status:
/// 0, 130 or 143. Throws what Trainer, prepare and files throw, and UsageError for options that exclude each other.
int train_all(const TrainOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
