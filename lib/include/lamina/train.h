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
#include "lamina/communicator.h"
#include "lamina/data.h"
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
  std::uint64_t epoch = 0;  ///< number of the epoch, from 0
  Score training{};         ///< score over the epoch's batches, while the parameters move and with dropout
  Score validation{};       ///< score after the epoch, without dropout; NaN without a validation set
  double seconds = 0;       ///< time of the batches and the validation, without the pause before a resume
  double validation_seconds = 0;
};

/// The progress within an epoch.
struct Progress {
  std::uint64_t epoch = 0;
  std::int64_t batch = 0, batches = 0;  ///< number of batches done, and of all batches in the epoch
  std::int64_t samples = 0;             ///< samples of the batch just done, on all ranks
  std::uint64_t updates = 0;            ///< updates since the run began
};

struct TrainerOptions {
  Optimiser optimiser = Adam{};  ///< named_optimiser() has the usual learning rate of each
  Schedule learning_rate = constant_rate(1e-3);
  double clip_norm = 0;    ///< largest norm, as Options::clip_norm
  int accumulate = 1;      ///< batches whose gradients make an update; the last update of an epoch may have fewer
  std::uint64_t seed = 0;  ///< seed of initial parameters, order, augmentation and dropout
  /// The first scale of the loss in f16, where small gradients would become 0. It adapts (LossScale). Other types have
  /// no scale.
  double loss_scale = 0x1p16;
  /// The training plan's options. The trainer sets mode, optimiser, clip_norm, loss_scale, accumulate_parameters, seed,
  /// share, batch_offset and sync_batch_norm_ranks.
  Options plan = Options();  // not {}: g++ 12 would warn falsely of its destructor

  const Source* validation = nullptr;  ///< validation data, or null; must outlive the trainer
  bool shuffle = true;                 ///< whether every epoch has a new order
  bool drop_last = false;  ///< whether to drop a last batch that is not full; else extra rows fill it and do not count
  int threads = 1;         ///< threads that prepare batches; with 0, train() prepares them itself

  /// Initialiser of the weights of convolutions and fully connected ops: a name of lamina/initialisers.h. Other
  /// parameters start as in Keras: biases 0, a batch norm's scale 1, embeddings "uniform"; in recurrent ops, input
  /// weights "glorot_uniform", recurrent weights "orthogonal", the bias of an LSTM "unit_forget_bias". A ScaleShift
  /// whose shift is fixed starts as "layer_scale", a PRelu as "prelu".
  std::string initialiser = "glorot_uniform";
  std::map<std::string, std::string> initialiser_of{};  ///< initialisers of single parameters, by name

  /// A safetensors file with parameters, state of the optimiser and counters. It is replaced as a whole after every
  /// epoch and every `checkpoint_updates` updates. If it exists, the trainer resumes from it. Empty: no checkpoint.
  std::filesystem::path checkpoint{};
  std::int64_t checkpoint_updates = 0;  ///< updates between checkpoints; 0: after epochs only

  /// The ranks that train together, each with this graph, data and options; null: no other ranks. The graph's batch is
  /// the part of one rank, and all parts make up the global batch. The communicator must outlive the trainer.
  Communicator* communicator = nullptr;
  /// Whether batch norm takes its statistics over the global batch of all ranks, as a single rank would; else over each
  /// rank's part.
  bool synchronised_batch_norm = false;
  std::size_t bucket_bytes = std::size_t{4} << 20;  ///< bytes of gradients whose sums over the ranks begin together

  std::function<void(const Progress&)> after_batch{};
  std::function<void(const EpochResult&)> after_epoch{};
};

/// Trains a graph whose output is a SoftmaxCrossEntropy or a SigmoidCrossEntropy with one label for each image. The
/// labels are an Input; there is one other Input, for the samples. The batch size is the graph's.
///
/// A run is a function of graph, backend, source and options. It has the same bits with any number of loader threads,
/// and with or without a resume from a checkpoint, as long as the backend's algorithms are deterministic. Losses stay
/// on the device until an epoch ends.
///
/// With a communicator every rank makes a trainer and calls the same members. A run of several ranks equals a run of
/// one rank with the global batch, to rounding: it has the same samples, masks of dropout, sums and clipping. Batch
/// norm takes the statistics of a rank's own part, or is synchronised. Parameters have the same bits on every rank.
/// Rank 0 writes the checkpoint, which every rank must be able to read. A run can resume from it with any number of
/// ranks of the same global batch. On a moved-from trainer every function except assignment throws UsageError.
class LAMINA_API Trainer {
 public:
  /// Source and backend must outlive the trainer. Throws what Plan throws, and
  /// - UsageError: a graph of another form, a source that does not fit it, options out of range, batch norm with a last
  ///   batch that is not full, a checkpoint of another run or other data, an unknown initialiser, ranks whose runs
  ///   differ;
  /// - FileError: a checkpoint that cannot be read, or whose folder is missing.
  Trainer(const Graph&, Backend&, const Source& train, TrainerOptions = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Trains until `epochs` are complete, including those of a checkpoint, and returns all of them. Throws what device,
  /// sources, callbacks and checkpoints throw; an error of a checkpoint is thrown after the callback. After such an
  /// exception train() may be called again, unless the device failed. Throws a plain Error if the training is lost: a
  /// loss is not finite (in f16: gradients are not finite at the least loss scale), or a parameter or a running
  /// statistic is not finite when a checkpoint is written.
  const std::vector<EpochResult>& train(int epochs);

  const std::vector<EpochResult>& epochs() const;  ///< the complete epochs
  bool resumed() const;                            ///< whether a checkpoint was found

  /// The score without dropout, with the present parameters.
  Score evaluate(const Source&);

  /// The scores of the epoch that began last, batch by batch. Empty in a new run, and after a resume at the start of an
  /// epoch, until a batch is done. Waits for the device.
  std::vector<Score> batch_scores() const;

  Plan& plan();  ///< the training plan; its parameters are the present ones

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

/// The work that a trainer does together with the other ranks. A single rank only runs its plan.
class LAMINA_API DataParallel {
 public:
  explicit DataParallel(Communicator*);  ///< null: a single rank

  int rank() const { return all_->rank(); }
  int size() const { return all_->size(); }
  Communicator& communicator() const { return *all_; }

  /// Cuts the row of all parameter gradients into buckets of at least `bytes` bytes, the last bucket first, because
  /// backward finishes the row from its end.
  void make_buckets(const Plan&, std::size_t bytes);

  void forward(Plan&);

  /// A backward pass. With `sums`, the gradients become their sums over all ranks. The sum of a bucket begins when its
  /// last gradient is finished, while the pass goes on.
  void backward(Plan&, bool sums);

  /// Turns the scores of this rank's parts into the scores of the global batches. An epoch has `samples` samples, a
  /// part has up to `part`.
  std::vector<Score> joined(std::vector<Score>, std::int64_t samples, int part) const;

  /// Replaces the running statistics of batch norm by their mean over all ranks. They are linear in the statistics of
  /// the batches, so this may happen at any time.
  void average_statistics(Plan&);

  /// Lets rank 0 write. If it fails, every rank throws: a FileError if rank 0's error is one, else an Error with its
  /// text.
  void write_once(const std::function<void()>& write) const;

 private:
  /// Sums over all ranks the values that call `call` - 1 left (StepProperties::cross_rank_sums). `first` is the first
  /// call of the pass.
  void join(const Plan&, std::size_t first, std::size_t call);

  struct Bucket {
    std::byte* data;
    std::int64_t count;
    std::size_t last_call;  ///< number of the last call that writes to the bucket
  };

  std::unique_ptr<Communicator> alone_;
  Communicator* all_;
  DType dtype_ = DType::f32;  // type of gradients
  std::vector<Bucket> buckets_;
  bool statistics_differ_ = false;
};

}  // namespace lamina
