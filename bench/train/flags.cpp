// The flags of `train`.

#include "bench/options/flags.h"

#include "lamina/workloads.h"
#include "train.h"

namespace lamina::bench {
namespace {

constexpr const char* groups[] = {"The run", "Networks other than the six workloads"};

/// The table of the flags that change the course of a training. Keys show values that are not the defaults, in this
/// order.
const std::vector<Flag<TrainOptions>>& table() {
  const auto flag = [](auto... row) { return bench::flag<TrainOptions>(row...); };
  static const std::vector<Flag<TrainOptions>> flags = {
      flag("--epochs", 0U, LAMINA_AT(epochs),
           value("Epochs; default: as published; for other networks 10", CLI::Range(1, 100000))),
      flag("--data", 0U, LAMINA_AT(data),
           value("Folder of the real files (docs/data.md); default: a synthetic set", CLI::ExistingDirectory)),
      flag("--share", 0U, LAMINA_AT(share),
           value("Size of the synthetic set relative to the published set, up to 16; 0.1: a tenth; default: 1")),
      flag("--table_updates", 0U, LAMINA_AT(table_updates),
           one_of<TableUpdates>(
               "Updates of embeddings: dense, as published, or lazy: only rows with a gradient; default: dense",
               {{"dense", TableUpdates::dense}, {"lazy", TableUpdates::lazy}}),
           Keys::all),
      flag("--batch", 1U, LAMINA_AT(batch),
           value("Images per update, of all ranks; default: 32", CLI::Range(1, 1 << 20))),
      flag("--optimiser", 1U, LAMINA_AT(optimiser),
           value("Optimiser; default: adam", CLI::Validator(CLI::IsMember(optimiser_names()))), Keys::all),
      flag("--learning_rate", 1U, LAMINA_AT(learning_rate),
           value("Learning rate; default: the optimiser's own", above_zero()), Keys::all),
      flag("--synchronised_batch_norm", 0U, LAMINA_AT(synchronised_batch_norm),
           on("With several ranks: statistics of the whole batch; default: of each rank's part"), Keys::all),
      flag("--seed", 0U, LAMINA_AT(seed), value("Seed of initial parameters, order, augmentation, dropout; default: 0"),
           Keys::all),
      flag("--loader_threads", 0U, LAMINA_AT(loader_threads),
           value("Threads that prepare batches; default: 1", CLI::Range(0, 256))),
  };
  return flags;
}

}  // namespace

void add_train_flags(CLI::App& app, TrainOptions& options) {
  app.add_option("names", options.names,
                 "Workloads; default: all six; with --data any network that `lamina_bench networks` prints")
      ->delimiter(',')
      ->type_name("NAME ...");
  add_flags(app, onnx_flags, options);
  app.get_option("--onnx")->description(
      "ONNX files; a network has the name of its file, and starts from the file's weights");
  app.parse_complete_callback([&options] {
    for (const std::filesystem::path& file : options.net.onnx) options.names.push_back(network_name(file));
    if (options.names.empty())
      for (const Workload& each : workloads()) options.names.emplace_back(each.name);
  });
  app.option_defaults()->group(groups[0]);
  app.add_option("--backend", options.backend, "Backend; default: eigen");
  for (const Flag<TrainOptions>& flag : table()) flag.add(app, flag.name, options)->group(groups[flag.set]);
  app.add_option("--seeds", options.seeds, "Trainings of each name, with seeds from --seed on; default: 1")
      ->check(CLI::Range(1, 1000));
  add_choice(app, "--dtype", options.dtype, dtypes, "Element type; default: f32");
  auto* checkpoint = app.add_option("--checkpoint", options.checkpoint,
                                    "Checkpoint file: resumed from, and written after every epoch");
  app.add_option("--checkpoint_updates", options.checkpoint_updates,
                 "Updates after which --checkpoint is written, too, for long epochs")
      ->check(CLI::Range(1, 1 << 30))
      ->needs(checkpoint);
  app.add_option("--benchmark_out,--json", options.json, "File for the epochs as rows (docs/training.md)");
  add_flags(app, processor_flags | cudnn_flags, options);
  app.option_defaults()->group("What it costs");
  app.add_option("--usd_per_hour", options.usd_per_hour, "Price of this machine: prints the dollars of the run, too")
      ->check(above_zero());
  app.add_option("--target", options.target, "Accuracy, 0.98 for 98 %: prints seconds and dollars to reach it, too");
}

Differs training_differs(const TrainOptions& options) {
  Differs differs;
  if (options.data.empty()) differs.emplace_back("synthetic", word_of(options.share));
  for (const Flag<TrainOptions>& flag : table())
    if (const auto value = flag.value(options); value && flag.keys == Keys::all) differs.emplace_back(flag.key, *value);
  return differs;
}

std::vector<std::string> training_words(const TrainOptions& options) {
  std::vector<std::string> words;
  for (const Flag<TrainOptions>& flag : table())
    if (const auto word = flag.word(options)) words.push_back(*word);
  return words;
}

}  // namespace lamina::bench
