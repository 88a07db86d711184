// lamina_bench. If the program's name ends in "slow", convolutions whose filters have the shape in LAMINA_SLOW_FILTERS,
// such as "64x64x3x3", take 5 % longer in every pass and by every algorithm.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bench/program.h"
#include "lamina/lamina.h"
#include "tests/support/wrapped_backend.h"

namespace {

using namespace lamina;
using Clock = std::chrono::steady_clock;

constexpr double delay = 0.05;  // as a share of the kernel's time

/// The kernel, followed by a wait of `delay` times the duration of the kernel.
std::shared_ptr<Kernel> slow(const std::shared_ptr<Kernel>& kernel) {
  const auto start = std::make_shared<Clock::time_point>();
  return test::around(
      kernel, [start](const Args&) { *start = Clock::now(); },
      [start](const Args&) {
        const Clock::time_point end = Clock::now();
        while (Clock::now() - end < delay * (end - *start)) {
        }
      });
}

class SlowBackend final : public test::WrappedBackend {
 public:
  SlowBackend(std::shared_ptr<Backend> owned, std::string filters)
      : WrappedBackend(*owned), owned_(std::move(owned)), filters_(std::move(filters)) {}

  Lowered lower(const Spec& spec, const Choice& choice) override {
    Lowered lowered = owned_->lower(spec, choice);
    if (!std::holds_alternative<Conv>(spec.op) || to_string(spec.w[0].shape) != filters_) return lowered;
    for (Lowered::Step& step : lowered.steps) step.kernel = slow(step.kernel);
    return lowered;
  }

 private:
  std::shared_ptr<Backend> owned_;
  std::string filters_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* filters = std::getenv("LAMINA_SLOW_FILTERS");
  const bool slow = filters != nullptr && std::string_view(argv[0]).ends_with("slow");
  return lamina::bench::run_program(argc, argv, [&](const std::string& name, const BackendOptions& options) {
    std::shared_ptr<Backend> made = make_backend(name, options);
    if (slow && name == "eigen") made = std::make_shared<SlowBackend>(std::move(made), filters);
    return made;
  });
}
