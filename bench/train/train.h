#pragma once
// Trainings of the six workloads, of the zoo's networks and of ONNX files, with their seconds and dollars.

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
  std::vector<std::string> names{};  ///< names of workloads, of the zoo's networks (with `data`), and of --onnx
  std::string backend = "eigen";
  DType dtype = DType::f32;
  int epochs = 0;                ///< epochs; 0: the workload's
  std::filesystem::path data{};  ///< folder of the real files; empty: a synthetic set
  double share = 1;              ///< share of the synthetic set
  std::uint64_t seed = 0;
  std::uint64_t seeds = 1;   ///< number of trainings of each, with consecutive seeds from `seed`
  int batch = 0;             ///< batch of all ranks for a network that is no workload; 0: 32
  std::string optimiser{};   ///< optimiser of a network that is no workload; empty: adam
  double learning_rate = 0;  ///< rate of a network that is no workload; 0: the optimiser's own
  TableUpdates table_updates = TableUpdates::dense;
  bool synchronised_batch_norm = false;
  int loader_threads = 1;
  std::filesystem::path json{};         ///< file of the epochs as rows; empty: none
  std::filesystem::path checkpoint{};   ///< checkpoint file; empty: none
  std::int64_t checkpoint_updates = 0;  ///< updates between checkpoints, besides those after epochs; 0: none
  double usd_per_hour = 0;              ///< price of the machine; 0: not known
  double target = 0;                    ///< accuracy; its seconds and dollars are reported, too; 0: none
};

void add_train_flags(CLI::App&, TrainOptions&);
Differs training_differs(const TrainOptions&);                 ///< differences from the defaults, for keys
std::vector<std::string> training_words(const TrainOptions&);  ///< flags that repeat the training

/// Any network on a folder of images: a network of the zoo, whose sizes follow from the data, or of an ONNX file, as it
/// is. The options that count are the data, the share, the seed, and the options of networks other than the workloads.
///
/// The network for the images and classes of the folder, with softmax cross entropy on its logits. The last batch of an
/// epoch is dropped unless it is full. Images are not augmented. Throws UsageError (an unknown network, images that the
/// network does not take), FileError (no such files, or damaged ones), ShapeError (images too small for the network).
PreparedWorkload prepare_network(const std::string& name, const TrainOptions&);

/// The network of an ONNX file, which starts from the file's weights. A softmax at its end becomes part of the loss;
/// the rest is as in prepare_network. Without a folder it is trained on synthetic glyphs of its images' size: 50,000
/// for training and 10,000 for validation at share 1, fewer if training images would take more than 256 MiB.
struct PreparedFile {
  PreparedWorkload training;
  TensorFile weights;  ///< weights for the training's plan
};

/// Throws UsageError (a network other than one of images to one row of logits; images that it does not take),
/// FileError, and what read_onnx throws.
PreparedFile prepare_file(const std::filesystem::path& onnx, const TrainOptions&);

/// Throws what prepare_file throws of the network; images are neither read nor drawn.
void check_file(const std::filesystem::path& onnx, const TrainOptions&);

/// Trains one after another. Prints a line for each epoch, then time and cost, and a table of several trainings at the
/// end. Progress goes to standard error: a line that is written over on a terminal, elsewhere a line in ten seconds.
/// Writes the files that the options ask for. Throws what Trainer, prepare and files throw, UsageError for options that
/// do not go together. At an interrupt it ends after the batch. Where mpirun started several processes, they train
/// together: rank 0 alone prints and writes, and a failure in one ends all. Gives the exit status: 0, 130 or 143.
int train_all(const TrainOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
