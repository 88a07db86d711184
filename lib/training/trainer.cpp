// Epochs of a training: batches in, updates, scores, checkpoints.

#include "lamina/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "checkpoint.h"
#include "feed.h"
#include "lamina/error.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

using namespace training;  // NOLINT(google-build-using-namespace): this component's own

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Options training_options(const TrainerOptions& given, const DataParallel& ranks, int part) {
  Options options = given.plan;
  options.mode = Mode::training;
  options.optimiser = given.optimiser;
  options.clip_norm = given.clip_norm;
  options.loss_scale = options.dtype == DType::f16 ? given.loss_scale : 0;
  options.accumulate_parameters = given.accumulate > 1;
  options.seed = given.seed;
  options.share = nullptr;
  options.batch_offset = std::int64_t{ranks.rank()} * part;
  options.sync_batch_norm_ranks = given.synchronised_batch_norm ? ranks.size() : 1;
  return options;
}

Options evaluation_options(const Plan& plan) {
  Options options = plan.options();
  options.mode = Mode::inference;
  options.optimiser.reset();
  options.table_updates = TableUpdates::dense;
  options.clip_norm = options.loss_scale = 0;
  options.accumulate_parameters = options.input_gradient = false;
  options.keep = Keep::all;
  options.share = &plan;
  return options;
}

LoaderOptions loader_options(const TrainerOptions& given, int part, const DataParallel& ranks) {
  return {.batch = part * ranks.size(),
          .shuffle = given.shuffle,
          .drop_last = given.drop_last,
          .seed = given.seed,
          .threads = given.threads,
          .ahead = 3,
          .rank = ranks.rank(),
          .ranks = ranks.size()};
}

TrainerOptions checked(TrainerOptions given) {
  if (given.accumulate < 1)
    throw UsageError("Trainer: accumulate is " + std::to_string(given.accumulate) + "; it should be at least 1");
  if (given.checkpoint_updates < 0)
    throw UsageError("Trainer: checkpoint_updates is " + std::to_string(given.checkpoint_updates) +
                     "; it should be at least 0");
  if (!(given.loss_scale > 0) || !std::isfinite(given.loss_scale))
    throw UsageError("Trainer: loss_scale is " + shortest(given.loss_scale) +
                     "; give a finite number above 0, as 65536");
  if (!given.learning_rate)
    throw UsageError("Trainer: learning_rate is empty; give a schedule, as constant_rate(0.001)");
  return given;
}

/// Refuses a folder that cannot be written to: the run would end after its first epoch.
void check_folder(const std::filesystem::path& checkpoint) {
  const std::filesystem::path folder = checkpoint.parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw FileError("Trainer: checkpoint " + checkpoint.string() + ": there is no folder " + folder.string() +
                    "; make it first");
}

/// Refuses a batch norm with a last batch that is not full: its rows of zeros would change the statistics.
void check_last_batch(const Graph& graph, const Loader& loader, int batch) {
  if (loader.samples() % batch == 0) return;
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<BatchNorm>(node.op))
      throw UsageError("Trainer: the last batch of an epoch has " + std::to_string(loader.samples() % batch) + " of " +
                       std::to_string(batch) + " samples, and node " + node.name +
                       " takes statistics of whole batches; set drop_last, or another batch size");
}

/// The body of a trainer. Throws UsageError if the trainer was moved from.
template <class Body>
Body& live(const std::unique_ptr<Body>& body) {
  if (body == nullptr) throw UsageError("this trainer was moved from; use the one it was moved to");
  return *body;
}

}  // namespace

struct Trainer::Body {
  /// A plan in inference mode with the parameters of the training plan.
  struct Evaluation {
    Plan plan;
    Feed feed;
    Evaluation(const Graph& graph, const Plan& training, const Inputs& inputs)
        : plan(graph, training.backend(), evaluation_options(training)), feed(plan, inputs) {}
  };
  struct Validation {
    Loader loader;
    Scores scores;
  };

  TrainerOptions options;
  DataParallel ranks;
  Backend& backend;
  Inputs inputs;
  Plan plan;
  Feed feed;
  Loader loader;
  Scores scores;
  std::string description;  // description of the run; empty without a checkpoint and with a single rank
  std::optional<Evaluation> evaluation;
  RunState run;
  std::vector<Score> resumed_scores;  // scores of the epoch's first batches, which came from a checkpoint
  bool resumed = false;
  bool scores_of_epoch = false;  // whether the scores are those of a whole epoch
  int added = 0;                 // number of batches whose gradients wait for an update
  std::int64_t added_samples = 0;
  std::int64_t sound = 0;  // number of the epoch's batches whose losses were checked
  double gradient = 1;     // present output gradient of the loss; a plan begins with 1

  Body(const Graph& graph, Backend& b, const Source& source, TrainerOptions given)
      : options(checked(std::move(given))),
        ranks(options.communicator),
        backend(b),
        inputs(inputs_of(graph)),
        plan(graph, b, training_options(options, ranks, graph.node(inputs.labels).shape.n)),
        feed(plan, inputs),
        loader(source, loader_options(options, feed.batch(), ranks)),
        scores(b.device(), plan.output().dtype, loader.batches()) {
    check_fits(plan, inputs, source);
    check_last_batch(plan.graph(), loader, batch());
    fill_parameters(plan, options);
    ranks.make_buckets(plan, options.bucket_bytes);
    if (!options.checkpoint.empty() || ranks.size() > 1)
      description = describe_run(plan, options, source, loader.samples(), batch());
    if (!options.checkpoint.empty()) {
      check_folder(options.checkpoint);
      if (std::filesystem::exists(options.checkpoint)) resume();
    }
    if (ranks.size() > 1) check_ranks();
    if (options.validation == nullptr) return;
    check_fits(plan, inputs, *options.validation);
    evaluation.emplace(plan.graph(), plan, inputs);
    validation = validation_of(*options.validation);
  }

  void resume() {
    run = load_checkpoint(options.checkpoint, plan, description);
    if (run.batch > loader.batches())
      throw FileError(options.checkpoint.string() + ": batch " + std::to_string(run.batch) + " of " +
                      std::to_string(loader.batches()) + "; remove the file to begin anew");
    resumed_scores = run.scores;
    resumed = true;
  }

  int batch() const { return feed.batch() * ranks.size(); }

  /// Refuses ranks that would wait for each other without end, or whose runs differ.
  void check_ranks() const {
    const std::int64_t unseen = options.validation == nullptr ? 0 : options.validation->count();
    check_same(ranks.communicator(), description + ", " + std::to_string(unseen) +
                                         " samples of validation, buckets of " + std::to_string(options.bucket_bytes) +
                                         " bytes, batch norm " +
                                         (options.synchronised_batch_norm ? "synchronised, " : "by parts, ") +
                                         (options.checkpoint.empty() ? "no checkpoint" : "a checkpoint") + " every " +
                                         std::to_string(options.checkpoint_updates) + " updates, begins at batch " +
                                         std::to_string(run.batch) + " of epoch " + std::to_string(run.epoch));
  }

  static constexpr const char* cures =
      "give a lower learning_rate, set clip_norm, or look in the data for such a number, or for a label that is no "
      "class";

  /// Throws if a loss of this rank is NaN or infinite: every later loss and the parameters would be, too. With loss
  /// scaling a loss may overflow. Then the run is lost only if the scale cannot become smaller.
  void check_losses(std::int64_t batches) {
    if (plan.options().loss_scale > 0) return check_loss_scale();
    for (; sound < batches; ++sound)
      if (const Score score = scores.read_one(backend.device(), sound); !std::isfinite(score.loss))
        throw Error("the loss of batch " + std::to_string(sound + 1) + " of epoch " + std::to_string(run.epoch + 1) +
                    " is " + shortest(score.loss) + "; " + cures);
  }

  void check_loss_scale() const {
    if (const LossScale now = plan.loss_scale(); now.skips == 1 && now.scale <= std::numeric_limits<float>::min())
      throw Error("before batch " + std::to_string(run.batch + 1) + " of epoch " + std::to_string(run.epoch + 1) +
                  " every update is skipped: the loss scale is " + shortest(now.scale) +
                  ", and gradients are not finite; " + cures);
  }

  /// The scores of the epoch's first `batches` batches, over all ranks.
  std::vector<Score> scores_so_far(std::int64_t batches) const {
    std::vector<Score> all = ranks.joined(scores.read(backend.device(), batches), loader.samples(), feed.batch());
    std::copy_n(resumed_scores.begin(), std::min(resumed_scores.size(), all.size()), all.begin());
    return all;
  }

  void save() {
    if (options.checkpoint.empty()) return;
    check_losses(run.batch);
    run.description = description;
    run.scores = scores_so_far(run.batch);
    ranks.average_statistics(plan);
    ranks.write_once([&] { save_checkpoint(options.checkpoint, plan, run); });
  }

  /// Saves if asked to, then reports. If the file cannot be written, reports first and then throws.
  template <class What>
  void save_and_report(bool saves, const std::function<void(const What&)>& report, const What& what) {
    std::exception_ptr unsaved;
    try {
      if (saves) save();
    } catch (const FileError&) {
      unsaved = std::current_exception();
    }
    if (report) report(what);
    if (unsaved) std::rethrow_exception(unsaved);
  }

  /// Whether several parts make one update.
  bool adds_parts() const { return options.accumulate > 1 || ranks.size() > 1; }

  /// Sets the gradient of the mean loss. When parts are added up, a part that is not full counts by its samples.
  void set_output_gradient(int samples) {
    const double share = !adds_parts() ? 1 : static_cast<double>(samples) / feed.batch();
    if (plan.options().loss_scale > 0) return plan.scale_loss(share);
    if (std::exchange(gradient, share) == share) return;
    const double pair[] = {share, 0};
    upload(backend.device(), plan.output_gradient(), std::span<const double>(pair));
  }

  void update() {
    const double scale = !adds_parts() ? 1 : feed.batch() / static_cast<double>(added_samples);
    plan.update(options.learning_rate(plan.updates()), scale);
    added = 0;
    added_samples = 0;
  }

  /// The number of samples of a batch, over all ranks.
  std::int64_t samples_of(std::int64_t number) const {
    return std::min<std::int64_t>(batch(), loader.samples() - number * batch());
  }

  void step(const Batch& batch) {
    feed.give(batch);
    ranks.forward(plan);
    scores.keep(backend.device(), plan.output(), batch.number);
    constexpr std::int64_t unwatched = 100;  // batches between two checks; a check waits for the GPU
    if (backend.device().has_host_memory() || batch.number % unwatched == 0) check_losses(batch.number + 1);
    set_output_gradient(batch.shape.n);
    const bool updates = ++added == options.accumulate || batch.number + 1 == loader.batches();
    ranks.backward(plan, updates);
    added_samples += samples_of(batch.number);
    if (updates) update();
    run.batch = batch.number + 1;
  }

  bool wants_checkpoint() const {
    return options.checkpoint_updates > 0 && added == 0 && run.batch < loader.batches() &&
           plan.updates() % static_cast<std::uint64_t>(options.checkpoint_updates) == 0;
  }

  void batches() {
    scores_of_epoch = false;
    if (run.batch == 0) {
      scores.clear(backend.device());
      resumed_scores.clear();
    }
    sound = run.batch;
    loader.start(run.epoch, run.batch);
    auto start = Clock::now();
    while (const Batch* batch = loader.next()) {
      step(*batch);
      run.seconds += since(std::exchange(start, Clock::now()));
      save_and_report(wants_checkpoint(), options.after_batch,
                      Progress{run.epoch, run.batch, loader.batches(), samples_of(batch->number), plan.updates()});
    }
  }

  Score evaluate(Evaluation& with, Validation& on) {
    ranks.average_statistics(plan);
    with.plan.parameters_changed();
    on.scores.clear(backend.device());  // 0 * old + new would keep an old NaN
    on.loader.start(0);
    while (const Batch* batch = on.loader.next()) {
      with.feed.give(*batch);
      with.plan.forward();
      on.scores.keep(backend.device(), with.plan.output(), batch->number);
    }
    const std::int64_t samples = on.loader.samples();
    return mean(ranks.joined(on.scores.read(backend.device(), on.loader.batches()), samples, feed.batch()), samples,
                batch());
  }

  std::unique_ptr<Validation> validation_of(const Source& source) {
    const LoaderOptions in_order{
        .batch = batch(), .shuffle = false, .threads = options.threads, .rank = ranks.rank(), .ranks = ranks.size()};
    const std::int64_t batches = (source.count() + batch() - 1) / batch();
    return std::unique_ptr<Validation>(
        new Validation{Loader(source, in_order), Scores(backend.device(), plan.output().dtype, batches)});
  }

  void epoch() {
    batches();
    ranks.average_statistics(plan);
    EpochResult result{.epoch = run.epoch};
    auto start = Clock::now();
    check_losses(loader.batches());
    result.training = mean(scores_so_far(loader.batches()), loader.samples(), batch());
    run.seconds += since(std::exchange(start, Clock::now()));
    if (validation) result.validation = evaluate(*evaluation, *validation);
    result.validation_seconds = since(start);
    result.seconds = run.seconds + result.validation_seconds;
    run.complete.push_back(result);
    run.epoch += 1;
    run.batch = 0;
    run.seconds = 0;
    scores_of_epoch = true;
    save_and_report(true, options.after_epoch, result);
  }

  std::unique_ptr<Validation> validation;  // last: its threads read the source
};

Trainer::Trainer(const Graph& graph, Backend& backend, const Source& train, TrainerOptions options)
    : body_(std::make_unique<Body>(graph, backend, train, std::move(options))) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const std::vector<EpochResult>& Trainer::train(int epochs) {
  Body& body = live(body_);
  while (body.run.epoch < static_cast<std::uint64_t>(std::max(epochs, 0))) body.epoch();
  return body.run.complete;
}

const std::vector<EpochResult>& Trainer::epochs() const { return live(body_).run.complete; }
bool Trainer::resumed() const { return live(body_).resumed; }
Plan& Trainer::plan() { return live(body_).plan; }

Score Trainer::evaluate(const Source& source) {
  Body& body = live(body_);
  check_fits(body.plan, body.inputs, source);
  if (!body.evaluation) body.evaluation.emplace(body.plan.graph(), body.plan, body.inputs);
  return body.evaluate(*body.evaluation, *body.validation_of(source));
}

std::vector<Score> Trainer::batch_scores() const {
  const Body& body = live(body_);
  return body.scores_so_far(body.scores_of_epoch ? body.loader.batches() : body.run.batch);
}

}  // namespace lamina
