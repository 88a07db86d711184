// lamina_bench, its backends on a model of a device with a queue.

#include <memory>
#include <string>

#include "bench/queued_backend.h"
#include "program.h"

int main(int argc, char** argv) {
  return lamina::bench::run_program(argc, argv, [](const std::string&, const lamina::BackendOptions&) {
    auto backend = std::make_unique<lamina::test::QueuedBackend>();
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
