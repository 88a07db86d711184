// A training that tests kill. At its end it prints a digest of all its results.
// usage: train_child CHECKPOINT|- EPOCHS [PAUSE_SECONDS]
// With "-" there is no checkpoint. A pause after every batch gives the test time to kill the process.

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "networks.h"
#include "runs.h"

using namespace lamina;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string checkpoint = argv[1];
  const std::chrono::duration<double> pause(argc > 3 ? std::atof(argv[3]) : 0);
  try {
    const auto backend = make_backend("eigen", {.threads = 1, .instruction_set = "generic"});
    const auto source = test::digits(100, 1), unseen = test::digits(30, 2);
    TrainerOptions options{.optimiser = Adam{}, .accumulate = 2, .seed = 7, .validation = unseen.get()};
    if (checkpoint != "-") options.checkpoint = checkpoint;
    options.checkpoint_updates = 1;
    options.after_batch = [&](const Progress&) { std::this_thread::sleep_for(pause); };
    Trainer trainer(test::small_network(8), *backend, *source, options);
    const auto& epochs = trainer.train(std::atoi(argv[2]));
    std::vector<test::Values> all = test::everything(trainer.plan());
    for (const EpochResult& e : epochs)
      all.push_back({e.training.loss, e.training.accuracy, e.validation.loss, e.validation.accuracy});
    std::printf("%016" PRIx64 "\n", test::digest(all));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_child: %s\n", error.what());
    return 1;
  }
  return 0;
}
