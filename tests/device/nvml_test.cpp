// Clock, temperature and power of a GPU from NVML: fake libraries are complete, old, incomplete or missing.

#include "lib/core/device/cuda/nvml.h"

#include "tests/support/catch.h"

namespace lamina {
namespace {

constexpr const char* place = "0000:3b:00.0";

std::string fake(const std::string& kind) { return LAMINA_FAKES "/nvml_" + kind + "/libnvidia-ml.so.1"; }

bool is_empty(const DeviceState& state) {
  return !state.sm_mhz && !state.temperature_c && !state.power_w && state.throttled.empty();
}

TEST_CASE("a GPU's state is the clock of its multiprocessors, the reasons for a low clock, temperature and power") {
  const Nvml gpu(place, fake("whole"));
  const DeviceState state = gpu.read();
  CHECK(state.sm_mhz == 1755.0);
  CHECK(state.temperature_c == 61.0);
  CHECK(state.power_w.value_or(0) == Approx(678.9));
  CHECK(state.throttled == "power cap, hardware thermal slowdown");
  CHECK(state.missing.empty());
}

TEST_CASE("readings that a GPU or an old driver lacks are missing with a reason, and the other readings are there") {
  const Nvml gpu(place, fake("old"));
  const DeviceState state = gpu.read();
  CHECK(state.sm_mhz == 1755.0);
  CHECK_FALSE(state.temperature_c);
  CHECK_FALSE(state.power_w);
  CHECK(state.throttled.empty());  // an idle GPU, by the function's older name
  CHECK(state.missing == "temperature: Not Supported (3); power: no such entry point");
}

TEST_CASE(
    "a library that is absent, lacks the function that finds a GPU, does not start or does not know the GPU gives no "
    "reading") {
  struct Failure {
    Nvml gpu;
    std::vector<std::string> says;
  };
  for (const Failure& failure :
       {Failure{Nvml(place, "/nowhere/libnvidia-ml.so.1"), {"/nowhere/libnvidia-ml.so.1"}},
        Failure{Nvml(place, fake("lacking")), {fake("lacking"), "lacks nvmlDeviceGetHandleByPciBusId_v2"}},
        Failure{Nvml(place, fake("refusing")), {"nvmlInit_v2: ", "(9)"}},
        Failure{Nvml("0000:01:00.0", fake("whole")), {"nvmlDeviceGetHandleByPciBusId_v2(0000:01:00.0): ", "(6)"}}}) {
    const DeviceState state = failure.gpu.read();
    CHECK(is_empty(state));
    for (const std::string& part : failure.says) CHECK_THAT(state.missing, ContainsSubstring(part));
  }
}

TEST_CASE("each reason for a lower clock has a name, and an idle GPU is no reason") {
  CHECK(throttle_text(0x1).empty());
  CHECK(throttle_text(0x2 | 0x8 | 0x10) == "application clocks, hardware slowdown, sync boost");
  CHECK(throttle_text(0x20 | 0x80 | 0x100) == "thermal slowdown, power brake, display clocks");
}

}  // namespace
}  // namespace lamina
