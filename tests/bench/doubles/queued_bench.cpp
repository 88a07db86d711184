// lamina_bench, with every backend on a modelled device with a queue. If TERMINATED_AT_PEAK is in the environment, the
// program gets SIGTERM when it first measures a peak.

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "bench/program.h"
#include "queued_backend.h"

int main(int argc, char** argv) {
  return lamina::bench::run_program(argc, argv, [](const std::string&, const lamina::BackendOptions&) {
    auto backend = std::make_unique<lamina::test::QueuedBackend>();
    if (std::getenv("TERMINATED_AT_PEAK") != nullptr) backend->at_peak = [] { std::raise(SIGTERM); };
    backend->device().reading = [] {
      lamina::DeviceState state;
      state.sm_mhz = 1755;
      state.power_w = 650.5;
      state.throttled = "power cap";
      state.missing = "temperature: Not Supported (3)";
      return state;
    };
    return backend;
  });
}
