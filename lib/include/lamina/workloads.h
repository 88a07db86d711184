#pragma once
// The six trainings of a published comparison of hardware (minimaxir/keras-cntk-benchmark 5b95f46, v2): networks,
// optimisers and data.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/data.h"
#include "lamina/graph.h"
#include "lamina/synthetic.h"
#include "lamina/train.h"

namespace lamina {

struct Workload {
  std::string_view name;    ///< "mnist_mlp"
  std::string_view source;  ///< one line of provenance
  int batch, epochs;
  std::int64_t samples;         ///< training samples in the published set
  std::string_view optimiser;   ///< name for named_optimiser
  double learning_rate, decay;  ///< numbers of inverse_time
  bool drop_last;
};

LAMINA_API const std::vector<Workload>& workloads();         ///< in the order of the posts
LAMINA_API const Workload& workload(std::string_view name);  ///< throws UsageError with near names

struct WorkloadOptions {
  /// Folder of the real files (docs/data.md): MNIST's, CIFAR-10's, imdb-train.ids and imdb-test.ids,
  /// imdb-bigrams-train.ids and imdb-bigrams-test.ids, or nietzsche.txt. Empty: a synthetic set in the same format.
  std::filesystem::path data{};
  double share = 1;       ///< size of a synthetic set relative to the published one, 0 to 16; above 1 for training only
  int width_divisor = 1;  ///< divides every hidden width (rounded up): narrow versions for tests
  int batch = 0;          ///< batch size; 0: the workload's own
  bool dropout = true;
  std::uint64_t seed = 0;
};

/// A workload ready to be trained.
struct PreparedWorkload {
  Graph graph;
  std::unique_ptr<Source> training, validation;  ///< lstm_text has no validation
  TrainerOptions options;                        ///< options, without a checkpoint and callbacks
  std::string data;                              ///< name of the data: "MNIST", or "synthetic glyphs"
  bool synthetic = true;
  /// What the best classifier of a synthetic set reaches on these validation samples. lstm_text has no validation
  /// samples: for it, this is the chain's loss on the training text, and the expected accuracy.
  std::optional<Optimum> optimum;
};

/// The network, its data and its training as in the source. Losses are computed as in Keras, with probabilities limited
/// to [1e-7, 1 - 1e-7]. Throws UsageError (options out of range), FileError (data), ShapeError.
LAMINA_API PreparedWorkload prepare(const Workload&, const WorkloadOptions& = {});
}  // namespace lamina
