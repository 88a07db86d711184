// The list of devices, and peaks that follow from their properties.

#include "lamina/devices.h"

#include "lib/core/device/gpu.h"
#include "tests/support/catch.h"

namespace lamina {
namespace {

TEST_CASE("the processor is the first device, with its cores and memory") {
  const std::vector<DeviceInfo> found = devices();
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].kind == DeviceInfo::Kind::processor);
  CHECK_FALSE(found[0].name.empty());
  CHECK(found[0].cores >= 1);
  CHECK(found[0].memory_bytes > 0);
}

TEST_CASE("the list has a GPU, or one line that says why there is none") {
  const std::string why = why_no_gpu();
  CHECK(why.empty() == (devices().size() > 1));
  CHECK(why.find('\n') == std::string::npos);
  for (const DeviceInfo& device : devices()) {
    if (device.kind != DeviceInfo::Kind::gpu) continue;
    CHECK(device.architecture.starts_with("sm_"));
    CHECK(device.multiprocessors > 0);
  }
}

TEST_CASE("computed peaks equal the peaks in NVIDIA's white papers") {
  // Multiprocessors, boost clock and dense peaks of A100, H100 SXM, T4 and V100.
  const auto tera = [](int units, int multiprocessors, double gigahertz) {
    return 2e-3 * units * multiprocessors * gigahertz;
  };
  CHECK(tera(units_of(8, 0).fp32, 108, 1.41) == Approx(19.5).epsilon(0.01));
  CHECK(tera(units_of(8, 0).tf32, 108, 1.41) == Approx(156).epsilon(0.01));
  CHECK(tera(units_of(8, 0).fp16, 108, 1.41) == Approx(312).epsilon(0.01));
  CHECK(tera(units_of(9, 0).fp32, 132, 1.98) == Approx(66.9).epsilon(0.01));
  CHECK(tera(units_of(9, 0).fp16, 132, 1.83) == Approx(989.4).epsilon(0.01));
  CHECK(tera(units_of(7, 5).fp16, 40, 1.59) == Approx(65).epsilon(0.01));
  CHECK(tera(units_of(7, 0).fp16, 80, 1.53) == Approx(125).epsilon(0.01));
  CHECK(units_of(99, 0).fp32 == 0);  // nothing is assumed of a future architecture
}

TEST_CASE("the processor's memory bandwidth is measured") {
  const DeviceRates rates = measure(devices()[0]);
  CHECK(rates.copy_bytes_per_second > 1e8);
  CHECK(rates.triad_bytes_per_second > 1e8);
  CHECK(rates.copy_bytes_per_second < 1e13);
  CHECK(rates.matrix_flops_per_second == 0);
}

}  // namespace
}  // namespace lamina
