// The table of devices, and the devices in the context: for made-up devices and for this machine's devices.

#include "bench/context/context.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

const DeviceInfo large = {.kind = DeviceInfo::Kind::gpu,
                          .number = 3,
                          .name = "NVIDIA Large",
                          .architecture = "sm_90",
                          .memory_bytes = std::size_t{141} << 30,
                          .multiprocessors = 132,
                          .cores = 16896,
                          .peak_fp32 = 66.9e12,
                          .peak_tf32 = 494.7e12,
                          .peak_fp16 = 989.4e12,
                          .peak_bytes_per_second = 4917e9};

}  // namespace

TEST_CASE("each column of the table of devices has the right number, in the column's unit") {
  const DeviceInfo small = {
      .name = "Small", .architecture = "x86_64", .memory_bytes = std::size_t{3} << 29, .cores = 2};
  const TextTable table = device_columns(
      {{small, {21.5e9, 18.3e9, 108e9, 97e9, 0, ""}, 163e9}, {large, {4012.3e9, 0, 65.4e12, 51.234e12, 372.5e12, ""}}});
  std::vector<std::string> titles;
  for (const TextTable::Column& column : table.columns) titles.push_back(column.title);
  CHECK(titles == std::vector<std::string>{"device", "name", "architecture", "GiB", "SMs", "cores", "peak fp32 TFLOP/s",
                                           "tf32", "fp16", "peak GB/s", "copy GB/s", "triad GB/s", "units TFLOP/s",
                                           "units at most", "matrix TFLOP/s", "tf32 matrix TFLOP/s"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0] == std::vector<std::string>{"processor", "Small", "x86_64", "1.5", "", "2", "", "", "", "",
                                                  "21.5", "18.3", "0.108", "0.163", "0.097", ""});
  CHECK(table.rows[1] == std::vector<std::string>{"gpu 3", "NVIDIA Large", "sm_90", "141.0", "132", "16896", "66.9",
                                                  "494.7", "989.4", "4917", "4012.3", "", "65.400", "", "51.234",
                                                  "372.500"});
}

TEST_CASE("the context describes a GPU, and leaves out its unknown properties") {
  const auto known = gpu_fact(large);
  CHECK(known.first == "gpu_3");
  for (const char* part : {"NVIDIA Large, sm_90, ", ", 132 SMs, 16896 CUDA cores, peak fp32 66.9 TFLOP/s",
                           ", tf32 494.7 TFLOP/s, fp16 989.4 TFLOP/s, memory 4917.0 GB/s"})
    CHECK_THAT(known.second, Catch::Matchers::ContainsSubstring(part));
  const auto fact =
      gpu_fact({.kind = DeviceInfo::Kind::gpu, .name = "To come", .architecture = "sm_990", .multiprocessors = 7});
  CHECK(fact.first == "gpu_0");
  CHECK_THAT(fact.second, Catch::Matchers::StartsWith("To come, sm_990, ") && Catch::Matchers::EndsWith(", 7 SMs"));
}

TEST_CASE("the context lists the GPUs, or says why there are none") {
  const auto facts = device_facts();
  CHECK(std::stoi(facts["processor_cores"].get<std::string>()) == devices()[0].cores);
  CHECK(facts.contains("gpu_0") == (devices().size() > 1));
  CHECK(facts.value("gpu", "") == why_no_gpu());
}
