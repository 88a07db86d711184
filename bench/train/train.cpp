// Trainings of the six workloads, of the zoo's networks and of ONNX files.

#include "train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench/context/build.h"
#include "bench/io/interrupt.h"
#include "bench/machine/ranks.h"
#include "bench/options/flags.h"
#include "lamina/error.h"
#include "report.h"

namespace lamina::bench {
namespace {

/// The file of a network; null: the network has no file.
const std::filesystem::path* file_of(const std::string& name, const TrainOptions& options) {
  const auto found = std::ranges::find(options.net.onnx, name, network_name);
  return found == options.net.onnx.end() ? nullptr : &*found;
}

/// The workload of this name; null: there is no such workload, or a file has this name.
const Workload* workload_of(const std::string& name, const TrainOptions& options) {
  if (file_of(name, options) != nullptr) return nullptr;
  const auto found = std::ranges::find(workloads(), name, &Workload::name);
  return found == workloads().end() ? nullptr : &*found;
}

/// Throws UsageError for an unknown name, and for a network of the zoo without --data: it has no synthetic set.
void check_name(const std::string& name, const TrainOptions& options) {
  check_no_path(name);
  nets::info(name);  // throws for an unknown name
  if (options.data.empty())
    throw UsageError(
        fmt::format("{} has no synthetic set: give --data, a folder of CIFAR-10's or MNIST's files", name));
}

void check(const TrainOptions& options) {
  if (!(options.share > 0 && options.share <= 16))
    throw UsageError(fmt::format("--share {}: it should be above 0, and at most 16", options.share));
  if (options.share != 1 && !options.data.empty())
    throw UsageError("--share is for synthetic sets; leave it out with --data");
  check_once("train", options.names);
  if ((options.names.size() > 1 || options.seeds > 1) && !options.checkpoint.empty())
    throw UsageError("--checkpoint is of one training; leave it out, or train one by one");
  if (!(options.target >= 0 && options.target <= 1))
    throw UsageError(fmt::format("--target {}: an accuracy is a share, from 0 to 1{}", options.target,
                                 options.target > 1 ? fmt::format("; for per cent say {}", options.target / 100) : ""));
  for (const std::string& name : options.names) {
    const Workload* known = workload_of(name, options);
    if (known == nullptr && file_of(name, options) == nullptr) check_name(name, options);
    if (known != nullptr && (options.batch > 0 || !options.optimiser.empty() || options.learning_rate > 0))
      throw UsageError(
          fmt::format("--batch, --optimiser and --learning_rate are for networks other than the six workloads; {} has "
                      "its published ones",
                      name));
  }
  for (const std::filesystem::path& file : options.net.onnx) check_file(file, options);
}

/// The prepared training, and its initial weights; empty weights: they are drawn at random.
PreparedFile prepared(const std::string& name, const TrainOptions& options) {
  if (const Workload* known = workload_of(name, options))
    return {prepare(*known, {.data = options.data,
                             .share = options.share,
                             .batch = part_of(known->batch, options.net.ranks),
                             .seed = options.seed}),
            {}};
  if (const std::filesystem::path* file = file_of(name, options)) return prepare_file(*file, options);
  return {prepare_network(name, options), {}};
}

/// The parts that all trainings of this run share.
struct Run {
  Communicator& ranks;
  Backend& backend;
  Record& record;
  const Print& print;
  std::string& unwritten;  ///< reason why the last checkpoint could not be written; empty: it was written
};

/// Trains all epochs, or until an interrupt. If a checkpoint cannot be written, the epoch still counts, and the next
/// epoch tries to write again.
void train_epochs(Trainer& trainer, std::size_t epochs, const Run& run) {
  for (std::size_t done = trainer.epochs().size(); done < epochs && interrupted() == 0;) {
    try {
      trainer.train(static_cast<int>(done) + 1);
      run.unwritten.clear();
    } catch (const FileError& error) {
      if (trainer.epochs().size() == done) throw;
      if (run.unwritten.empty()) fmt::print(stderr, "lamina_bench: {}; it goes on, and will try again\n", error.what());
      run.unwritten = error.what();
    }
    done = trainer.epochs().size();
  }
}

/// Trains once, to the last epoch or until an interrupt.
Trained train_once(const std::string& name, const TrainOptions& options, const Run& run) {
  const Print& print = run.print;
  const Workload* known = workload_of(name, options);
  const int epochs = options.epochs > 0 ? options.epochs : known != nullptr ? known->epochs : 10;
  auto [ready, weights] = prepared(name, options);
  const std::string data_note = fmt::format("  ({})", ready.data);
  TrainingScreen screen(static_cast<std::uint64_t>(epochs), on_terminal() ? 0.2 : 10, show_step);
  double cpu = 0;
  TrainerOptions& how = ready.options;
  how.plan.dtype = options.dtype;
  how.plan.table_updates = options.table_updates;
  how.synchronised_batch_norm = options.synchronised_batch_norm;
  how.checkpoint = options.checkpoint;
  how.checkpoint_updates = options.checkpoint_updates;
  how.threads = options.loader_threads;
  how.communicator = &run.ranks;
  how.after_batch = [&](const lamina::Progress& at) {
    screen.batch_done(at);
    if (interrupted() != 0) throw Interrupted();
  };
  how.after_epoch = [&](const EpochResult& e) {
    const double cpu_of_epoch = cpu_seconds() - cpu;
    clear_step();
    run.record.epoch_done(e, cpu_of_epoch);
    print(epoch_line(e, epochs, data_note));
    cpu = cpu_seconds();
  };
  std::optional<EndsPlanning> ends(std::in_place, options.net.ranks == 1);  // of several ranks, none may leave
  Trainer trainer(ready.graph, run.backend, *ready.training, how);
  ends.reset();
  const bool lazy = options.table_updates == TableUpdates::lazy;
  print(fmt::format("{}: {} parameters, {}{}, batch {}, {} samples, seed {}, on {} ({}){}{}\n", name,
                    ready.graph.parameter_count(), to_string(how.optimiser), lazy ? " with lazy updates of tables" : "",
                    options.net.ranks * ready.graph.node("labels").shape.n, ready.training->count(), options.seed,
                    options.backend, run.backend.describe(),
                    options.net.ranks > 1 ? fmt::format(", {} ranks", options.net.ranks) : "", data_note));
  if (!weights.empty() && !trainer.resumed()) load_weights(trainer.plan(), weights);
  if (trainer.resumed()) {
    const std::vector<EpochResult>& done = trainer.epochs();
    print(static_cast<int>(done.size()) < epochs
              ? fmt::format("goes on after {} of {} epochs{}\n", done.size(), epochs, data_note)
              : fmt::format("{} has {} epochs already{}\n", how.checkpoint.string(), done.size(), data_note));
  }
  run.record.begin(name, file_of(name, options), ready, options, epochs, trainer.epochs());
  cpu = cpu_seconds();
  try {
    train_epochs(trainer, static_cast<std::size_t>(epochs), run);
  } catch (const Interrupted&) {
    // The finished part is printed.
  }
  clear_step();
  if (trainer.epochs().size() < static_cast<std::size_t>(epochs)) {
    print(stopped_line(options, trainer.epochs().size(), epochs, data_note));
    run.ranks.abort(128 + interrupted());  // other ranks may wait in a batch that this rank has left
  }
  run.record.trained();
  Trained trained{name, ready.data, options.seed, samples_of(ready), ready.optimum, trainer.epochs()};
  if (trained.epochs.empty()) return trained;
  print(summary(options, trained.epochs, data_note));
  if (ready.optimum)
    print(fmt::format("the best possible classifier of this set: loss {:.4f}, accuracy {:.4f}{}\n", ready.optimum->loss,
                      ready.optimum->accuracy, data_note));
  return trained;
}

int train_as_rank(const TrainOptions& options, Communicator& ranks, const MakeBackend& make, const Print& print) {
  check_same(ranks, fmt::format("lamina {} of commit {}, the backend {}, trainings {}, {} seeds, {} epochs",
                                build::lamina_version, build::commit, options.backend, fmt::join(options.names, " "),
                                options.seeds, options.epochs));
  for (const std::filesystem::path& file : {options.json, options.checkpoint})
    if (!file.empty()) check_writable(file);
  BackendSettings settings = options.backends;
  settings.names = {options.backend};
  if (options.net.ranks > 1 && settings.threads == 0) settings.threads = ranks.threads();
  Backends backends(settings, make);
  Backend& backend = backends.usable(options.backend);
  Record record(options, backends);
  std::string unwritten;
  const Run run{ranks, backend, record, print, unwritten};
  std::vector<Trained> all;
  for (const std::string& name : options.names)
    for (TrainOptions its = options; its.seed != options.seed + options.seeds && interrupted() == 0; ++its.seed) try {
        all.push_back(train_once(name, its, run));
      } catch (const Interrupted&) {
        fmt::print(stderr, "{} was not begun\n", name);
      }
  if (all.size() > 1) print("\n" + trained_table(all).text());
  record.end();
  if (!unwritten.empty()) throw FileError(unwritten);
  return interrupted() != 0 ? 128 + interrupted() : 0;
}

}  // namespace

int train_all(const TrainOptions& given, const MakeBackend& make, const Print& print) {
  check(given);
  return with_ranks(given.backend, [&](Communicator& ranks) {
    TrainOptions options = given;
    options.net.ranks = ranks.size();
    if (ranks.rank() != 0) options.json = "";
    return train_as_rank(options, ranks, make, print);
  });
}

}  // namespace lamina::bench
