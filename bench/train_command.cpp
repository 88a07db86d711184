// The subcommand `train`: its flags.

#include "bench/io/interrupt.h"
#include "bench/measure/networks.h"
#include "bench/options/flags.h"
#include "bench/train/train.h"
#include "commands.h"

namespace lamina::bench {

Action train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  app.add_option(
         "names", options->names,
         "mnist_mlp, mnist_cnn, cifar10_cnn, imdb_fasttext, imdb_bilstm, lstm_text; with --data any network that "
         "`lamina_bench networks` prints")
      ->delimiter(',')
      ->type_name("NAME ...");
  add_onnx(app, options->onnx, options->onnx_settings,
           "ONNX files: networks that are called by the names of their files, and start from their weights");
  app.parse_complete_callback([options] {
    for (const std::filesystem::path& file : options->onnx) options->names.push_back(network_name(file));
    if (options->names.empty()) throw CLI::RequiredError("names, or --onnx");
  });
  constexpr const char* run = "The run";
  app.add_option("--backend", options->backend, "Backend; default: eigen")->group(run);
  app.add_option("--epochs", options->epochs, "Epochs; default: as published, of other networks 10")
      ->check(CLI::Range(1, 100000))
      ->group(run);
  app.add_option("--data", options->data, "Folder of the real files (docs/data.md); default: a synthetic set")
      ->check(CLI::ExistingDirectory)
      ->group(run);
  app.add_option("--share", options->share,
                 "Samples of the synthetic set for each of the published ones, up to 16; 0.1: a tenth; default: 1")
      ->group(run);
  app.add_option("--seed", options->seed, "Seed of initial parameters, order, augmentation, dropout; default: 0")
      ->group(run);
  app.add_option("--seeds", options->seeds, "Trainings of each: with --seed, and as many seeds after it; default: 1")
      ->check(CLI::Range(1, 1000))
      ->group(run);
  add_choice(app, "--dtype", options->dtype, dtypes, "Element type; default: f32")->group(run);
  add_choice(app, "--table_updates", options->table_updates,
             {{"dense", TableUpdates::dense}, {"lazy", TableUpdates::lazy}},
             "Updates of embeddings: dense, as published, or lazy: only rows with a gradient; default: dense")
      ->group(run);
  app.add_flag("--synchronised_batch_norm", options->synchronised_batch_norm,
               "Statistics of the whole batch where mpirun started several ranks; default: of each rank's part")
      ->group(run);
  app.add_option("--loader_threads", options->loader_threads, "Threads that prepare batches; default: 1")
      ->check(CLI::Range(0, 256))
      ->group(run);
  auto* checkpoint =
      app.add_option("--checkpoint", options->checkpoint, "File to go on from, written after every epoch")->group(run);
  app.add_option("--checkpoint_updates", options->checkpoint_updates,
                 "Updates after which --checkpoint is written, too, for long epochs")
      ->check(CLI::Range(1, 1 << 30))
      ->needs(checkpoint)
      ->group(run);
  app.add_option("--benchmark_out,--json", options->json, "File for the epochs as rows (docs/training.md)")->group(run);
  constexpr const char* zoo = "Networks other than the six workloads";
  app.add_option("--batch", options->batch, "Images per update, of all ranks; default: 32")
      ->check(CLI::Range(1, 1 << 20))
      ->group(zoo);
  add_optimiser(app, options->optimiser, "Optimiser; default: adam")->group(zoo);
  app.add_option("--learning_rate", options->learning_rate, "Learning rate; default: the optimiser's own")
      ->check(above_zero())
      ->group(zoo);
  add_processor(app, options->backends);
  add_cudnn(app, options->backends.cudnn);
  constexpr const char* cost = "What it costs";
  app.add_option("--usd_per_hour", options->usd_per_hour, "Price of this machine: dollars of the run as well")
      ->check(above_zero())
      ->group(cost);
  app.add_option("--target", options->target, "Accuracy, 0.98 for 98 %: seconds and dollars to it as well")
      ->group(cost);
  return [options](const MakeBackend& make) {
    catch_interrupts();
    check(options->backends);
    check_onnx_extents(options->onnx, options->onnx_settings);
    return train_all(*options, make, print_now);
  };
}

}  // namespace lamina::bench
