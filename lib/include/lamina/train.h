#pragma once
// Training: epochs over the samples of a source, evaluation, checkpoints from which a run continues with identical
// bits.
//
//     Graph graph("digits");
//     const Value images = graph.input({128, 1, 28, 28}, "images"), labels = graph.input({128, 1, 1, 1}, "labels");
//     softmax_cross_entropy(fully_connected(images, "fc", {.outputs = 10}), labels);
//
//     const auto train = image_source(read_mnist("data", Part::train));
//     const auto test = image_source(read_mnist("data", Part::test));
//     const auto backend = make_backend("eigen");
//     Trainer trainer(graph, *backend, *train, {.validation = test.get()});
//     for (const EpochResult& epoch : trainer.train(20)) std::printf("%f\n", epoch.validation.accuracy);

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/backend.h"
#include "lamina/batches.h"
#include "lamina/communicator.h"
#include "lamina/graph.h"
#include "lamina/optimiser.h"
#include "lamina/plan.h"

namespace lamina {

/// Mean loss and share of right answers over the samples of a source.
struct Score {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

/// The result of an epoch.
struct EpochResult {
  std::uint64_t epoch = 0;  ///< from 0
  Score training{};         ///< over its batches, as the parameters move and with dropout
  Score validation{};       ///< after it, without dropout; NaN without a validation set
  double seconds = 0;       ///< from its first batch to its last validation, as far as it ran
  double validation_seconds = 0;
};

/// The progress within an epoch.
struct Progress {
  std::uint64_t epoch = 0;
  std::int64_t batch = 0, batches = 0;  ///< done; in all
  std::int64_t samples = 0;             ///< samples of the batch just done, on all ranks
  std::uint64_t updates = 0;            ///< since the run began
};

struct TrainerOptions {
  Optimiser optimiser = Adam{};  ///< named_optimiser() has the usual learning rate of each
  Schedule learning_rate = constant_rate(1e-3);
  double clip_norm = 0;    ///< as Options::clip_norm
  int accumulate = 1;      ///< batches that are added up for an update; at the end of an epoch it may be fewer
  std::uint64_t seed = 0;  ///< seed of initial parameters, order, augmentation and dropout
  /// The first scale of the loss in f16, whose small gradients would be 0: it adapts (LossScale). Other types have
  /// none.
  double loss_scale = 0x1p16;
  /// The training plan's options. The trainer sets mode, optimiser, clip_norm, accumulate_parameters, seed and share.
  Options plan = Options();  // not {}: g++ 12 would warn falsely of its destructor

  const Source* validation = nullptr;  ///< must outlive the trainer
  bool shuffle = true;                 ///< a new order in every epoch
  bool drop_last = false;  ///< drop the last batch if it is not full; otherwise its missing rows count nothing
  int threads = 1;         ///< threads that prepare batches; with 0, train() prepares them itself

  /// What convolutions' and fully connected weights start as: a name of lamina/initialisers.h. Others start as in
  /// Keras: biases 0, a batch norm's scale 1, embeddings "uniform", of an LSTM "glorot_uniform" for inputs,
  /// "orthogonal" for the recurrent weight, "unit_forget_bias".
  std::string initialiser = "glorot_uniform";
  std::map<std::string, std::string> initialiser_of{};  ///< by a parameter's name, if it differs

  /// A safetensors file: parameters, state of the optimiser, counters. It is replaced as a whole after every epoch and
  /// every `checkpoint_updates` updates. If it exists, the trainer goes on from it. Empty: none.
  std::filesystem::path checkpoint{};
  std::int64_t checkpoint_updates = 0;  ///< 0: after epochs only

  /// Ranks that train together, each with this graph, data and options; null: none. The graph's batch is the part of
  /// one rank, and a batch is that of all ranks. It must outlive the trainer.
  Communicator* communicator = nullptr;
  /// Whether batch norm takes the statistics of the batch of all ranks, as one rank would; else those of a rank's part.
  bool synchronised_batch_norm = false;
  std::size_t bucket_bytes = std::size_t{4} << 20;  ///< gradients whose sums over the ranks begin together

  std::function<void(const Progress&)> after_batch{};
  std::function<void(const EpochResult&)> after_epoch{};
};

/// Trains a graph whose output is a SoftmaxCrossEntropy or a SigmoidCrossEntropy with one label for each image. The
/// labels are an Input; there is one other Input, of the samples. The batch size is the graph's.
///
/// A run is a function of graph, backend, source and options: it has the same bits with any number of loader threads,
/// and whether or not it went on from a checkpoint, as long as the backend's algorithms are deterministic. Losses stay
/// on the device until an epoch ends.
///
/// With a communicator every rank makes a trainer and calls the same members. A run of several ranks equals that of one
/// with the whole batch, to rounding: the same samples, masks of dropout, sums and clipping. Batch norm takes the
/// statistics of a rank's own part, or is synchronised. Parameters have the same bits on every rank. Rank 0 writes the
/// checkpoint, which every rank must be able to read; a run goes on from it with any number of ranks of the same whole
/// batch. On a moved-from trainer every function but assignment throws UsageError.
class LAMINA_API Trainer {
 public:
  /// Source and backend must outlive it. Throws UsageError (a graph of another form, a source that does not fit it,
  /// options out of range, batch norm with a last batch that is not full, a checkpoint of another run or data, an
  /// unknown initialiser, ranks whose runs differ), FileError (a checkpoint that cannot be read, or has no folder), and
  /// what Plan throws.
  Trainer(const Graph&, Backend&, const Source& train, TrainerOptions = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Trains until `epochs` are complete, those before a checkpoint included, and gives all. Throws what device,
  /// sources, callbacks and checkpoints throw, the last after the callback. Unless it was the device, train() goes on.
  /// Error, of no kind: the training is lost. A loss is not finite (in f16: not one gradient at the least loss scale),
  /// or a parameter is not when a checkpoint is written.
  const std::vector<EpochResult>& train(int epochs);

  const std::vector<EpochResult>& epochs() const;  ///< complete ones
  bool resumed() const;                            ///< whether a checkpoint was found

  /// Without dropout, with the present parameters.
  Score evaluate(const Source&);

  /// The scores of the epoch that began last, batch by batch. None if a checkpoint ended an epoch and no batch was done
  /// since. Waits for the device.
  std::vector<Score> batch_scores() const;

  Plan& plan();  ///< plan of the training; its parameters are the present ones

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lamina
