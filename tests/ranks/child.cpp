// A training by several ranks, of which one fails.
// usage: rank_child throws|hangs|errs, or rank_child goes-on CHECKPOINT EPOCHS
// In its fourth batch, rank 1 throws (`throws`), stops (`hangs`) or sets a parameter to NaN (`errs`). `goes-on` resumes
// the training from the checkpoint, and writes the checkpoint after every update. Rank 0 prints the number of updates
// in the file, at first and after each update, and at the end the loss of every epoch.

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lamina/communicator.h"
#include "tests/train/networks.h"

using namespace lamina;

namespace {

template <class... Values>
void say(const char* format, Values... values) {
  std::printf(format, values...);
  std::fflush(stdout);
}

void go_on(Communicator& ranks, const Graph& graph, Backend& backend, const Source& source, char** arguments) {
  TrainerOptions options{.checkpoint = arguments[0], .checkpoint_updates = 1, .communicator = &ranks};
  options.plan.dtype = DType::f64;
  const auto tell = [&](const char* what, std::uint64_t updates) {
    if (ranks.rank() == 0) say("%s %llu\n", what, static_cast<unsigned long long>(updates));
  };
  std::uint64_t updates = 0;
  options.after_batch = [&](const Progress& at) {
    updates = at.updates;
    if (at.batch < at.batches) tell("updates", updates);  // the file is not yet written after an epoch's last batch
  };
  options.after_epoch = [&](const EpochResult&) { tell("updates", updates); };
  Trainer trainer(graph, backend, source, options);
  tell("begins at", trainer.plan().updates());
  say("pid %d\n", static_cast<int>(getpid()));
  for (const EpochResult& epoch : trainer.train(std::atoi(arguments[1])))
    if (ranks.rank() == 0) say("loss %.17g\n", epoch.training.loss);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto ranks = make_communicator("mpi", {.limit_seconds = 2});
  try {
    const auto backend = make_backend("eigen", {.threads = 1, .instruction_set = "generic"});
    const auto source = test::digits(100, 1);
    const Graph graph = test::small_network(8 / ranks->size());
    if (mode == "goes-on" && argc == 4) {
      go_on(*ranks, graph, *backend, *source, argv + 2);
      return 0;
    }
    TrainerOptions options{.communicator = ranks.get()};
    Plan* plan = nullptr;
    options.after_batch = [&](const Progress& at) {
      if (at.epoch > 0 || at.batch != 4) return;
      say("pid %d\n", static_cast<int>(getpid()));
      if (mode == "throws" && ranks->rank() == 1) throw std::runtime_error("the disk is full");
      if (mode == "hangs" && ranks->rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
      if (mode == "errs" && ranks->rank() == 1)
        upload(backend->device(), plan->parameter("fc.bias"), std::vector<float>(10, NAN));
    };
    Trainer trainer(graph, *backend, *source, options);
    plan = &trainer.plan();
    trainer.train(1 << 30);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", ranks->rank(), ranks->size(), error.what());
    ranks->abort(3);
  }
  return 1;
}
