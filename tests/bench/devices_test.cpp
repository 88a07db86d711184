// The table of devices and their facts, of devices that are made up.

#include "bench/context/devices.h"

#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

DeviceInfo large() {
  DeviceInfo device;
  device.kind = DeviceInfo::Kind::gpu;
  device.number = 3;
  device.name = "NVIDIA Large";
  device.architecture = "sm_90";
  device.memory_bytes = std::size_t{141} << 30;
  device.multiprocessors = 132;
  device.cores = 16896;
  device.peak_fp32 = 66.9e12;
  device.peak_tf32 = 494.7e12;
  device.peak_fp16 = 989.4e12;
  device.peak_bytes_per_second = 4917e9;
  return device;
}

DeviceRates rates(double copy, double triad, double matrix) {
  DeviceRates result;
  result.copy_bytes_per_second = copy;
  result.triad_bytes_per_second = triad;
  result.matrix_flops_per_second = matrix;
  return result;
}

}  // namespace

TEST_CASE("each column of the table of devices has its own number, in its unit") {
  DeviceInfo processor;
  processor.name = "Small";
  processor.architecture = "x86_64";
  processor.memory_bytes = std::size_t{3} << 29;
  processor.cores = 2;
  DeviceRates of_gpu = rates(4012.3e9, 0, 51.234e12);
  of_gpu.tf32_matrix_flops_per_second = 372.5e12;
  const TextTable table =
      device_columns({{processor, rates(21.5e9, 18.3e9, 97e9), 108e9, 163e9}, {large(), of_gpu, 65.4e12}});
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

TEST_CASE("a GPU is a fact of the context, which leaves out what is not known") {
  const Fact known = gpu_fact(large());
  CHECK(known.first == "gpu_3");
  for (const char* part : {"NVIDIA Large, sm_90, ", ", 132 SMs, 16896 CUDA cores, peak fp32 66.9 TFLOP/s",
                           ", tf32 494.7 TFLOP/s, fp16 989.4 TFLOP/s, memory 4917.0 GB/s"})
    CHECK_THAT(known.second, Catch::Matchers::ContainsSubstring(part));
  DeviceInfo unknown;
  unknown.kind = DeviceInfo::Kind::gpu;
  unknown.name = "To come";
  unknown.architecture = "sm_990";
  unknown.multiprocessors = 7;
  const Fact fact = gpu_fact(unknown);
  CHECK(fact.first == "gpu_0");
  CHECK_THAT(fact.second, Catch::Matchers::StartsWith("To come, sm_990, ") && Catch::Matchers::EndsWith(", 7 SMs"));
}

TEST_CASE("the context says which GPUs there are, or why none") {
  std::map<std::string, std::string> facts;
  for (const auto& [name, text] : device_facts()) facts[name] = text;
  CHECK(std::stoi(facts.at("processor_cores")) == devices()[0].cores);
  CHECK(facts.count("gpu_0") == (devices().size() > 1 ? 1 : 0));
  CHECK((facts.count("gpu") == 0 ? "" : facts.at("gpu")) == why_no_gpu());
}
