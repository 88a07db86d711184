// A training by ranks of which one fails. usage: rank_child throws|hangs|errs|runs
// `throws`: rank 1 throws in its fourth batch. `hangs`: it stops there. `errs`: a parameter of it is NaN from there on.
// `runs`: all run until they are killed.

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lamina/communicator.h"
#include "tests/train/networks.h"

using namespace lamina;

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto ranks = make_communicator("mpi", {.limit_seconds = 2});
  try {
    const auto backend = make_backend("eigen", {.threads = 1, .instruction_set = "generic"});
    const auto source = test::digits(100, 1);
    TrainerOptions options{.communicator = ranks.get()};
    Plan* plan = nullptr;
    options.after_batch = [&](const Progress& at) {
      if (at.epoch > 0 || at.batch != 4) return;
      std::printf("pid %d\n", static_cast<int>(getpid()));
      std::fflush(stdout);
      if (mode == "throws" && ranks->rank() == 1) throw std::runtime_error("the disk is full");
      if (mode == "hangs" && ranks->rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
      if (mode == "errs" && ranks->rank() == 1)
        upload(backend->device(), plan->parameter("fc.bias"), std::vector<float>(10, NAN));
    };
    Trainer trainer(test::small_network(4), *backend, *source, options);
    plan = &trainer.plan();
    trainer.train(1 << 30);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", ranks->rank(), ranks->size(), error.what());
    ranks->abort(3);
  }
  return 1;
}
