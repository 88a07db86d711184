// A training that other programs kill: prints a digest of everything that it ends with.
// usage: train_child CHECKPOINT|- EPOCHS [PAUSE_SECONDS]
// With "-" there is no checkpoint. A pause after every batch leaves time to be killed.

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <thread>

#include "lamina/random.h"
#include "networks.h"

using namespace lamina;

namespace {

std::uint64_t digest(Plan& plan, const std::vector<EpochResult>& epochs) {
  Device& device = plan.backend().device();
  std::string bytes;
  const auto add = [&](const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); };
  const auto add_tensor = [&](const Tensor& tensor) {
    std::vector<char> raw(static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype));
    device.download(raw.data(), tensor.data, raw.size());
    add(raw.data(), raw.size());
  };
  for (const std::string& name : plan.parameter_names()) add_tensor(plan.parameter(name));
  for (const std::string& name : plan.state_names()) add_tensor(plan.state(name));
  for (const std::string& name : plan.optimiser_state_names()) add_tensor(plan.optimiser_state(name));
  for (const EpochResult& e : epochs)
    for (const double value : {e.training.loss, e.training.accuracy, e.validation.loss, e.validation.accuracy})
      add(&value, sizeof value);
  return hash(bytes);
}

}  // namespace

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
    std::printf("%016" PRIx64 "\n", digest(trainer.plan(), epochs));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_child: %s\n", error.what());
    return 1;
  }
  return 0;
}
