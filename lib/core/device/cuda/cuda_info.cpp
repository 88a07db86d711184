// What the CUDA runtime reports about GPUs, and their measured peaks.

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "cuda_device.h"
#include "cuda_raii.h"
#include "lamina/error.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/gpu.h"
#include "lib/core/device/math_environment.h"

namespace lamina {
namespace {

using cudart::attribute;

constexpr int matrix_extent = 4096, tries = 9;

/// The driver's own version, "580.65.06", from a line such as "NVRM version: NVIDIA UNIX ... 580.65.06  Release ...".
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return {};
}

/// The shortest time of several runs of `work`, after one run to warm up.
template <class Work>
double shortest_seconds(Device& device, Work&& work) {
  const std::unique_ptr<Timer> timer = device.timer();
  work();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    timer->start();
    work();
    timer->stop();
    best = std::min(best, timer->seconds());
  }
  return best;
}

double copy_rate(CudaDevice& device) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  const Buffer from(device, bytes);
  const Buffer to(device, bytes);
  device.fill(from.data(), 1, bytes);
  return 2 * static_cast<double>(bytes) / shortest_seconds(device, [&] { device.copy(to.data(), from.data(), bytes); });
}

void measure_matrix(CudaDevice& device, DeviceRates& rates) {
  for (const Math math : {Math::strict, Math::tf32})
    check_math_environment("products of matrices", DType::f32, math, Products::of_cublas);
  constexpr std::size_t count = std::size_t{matrix_extent} * matrix_extent;
  const Buffer a(device, count * sizeof(float));
  const Buffer b(device, count * sizeof(float));
  const Buffer c(device, count * sizeof(float));
  const Buffer workspace(device, Blas::workspace_bytes);
  // The operands are not zeros: with constant operands a device runs cooler, and so faster, than in any real product.
  std::vector<float> values(count);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = 1664525 * state + 1013904223;
    value = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  device.upload(a.data(), values.data(), count * sizeof(float));
  device.upload(b.data(), values.data(), count * sizeof(float));
  Blas blas(blas_library().table, device.stream());
  blas.use_workspace(workspace.data(), workspace.size_bytes());
  Gemm<float> product{.m = matrix_extent, .n = matrix_extent, .k = matrix_extent};
  product.a = static_cast<const float*>(a.data());
  product.b = static_cast<const float*>(b.data());
  product.c = static_cast<float*>(c.data());
  product.lda = product.ldb = product.ldc = matrix_extent;
  const auto rate = [&] {
    return 2 * static_cast<double>(count) * matrix_extent / shortest_seconds(device, [&] { blas.gemm(product); });
  };
  rates.matrix_flops_per_second = rate();
  blas.allow_tf32(true);
  rates.tf32_matrix_flops_per_second = rate();
  rates.matrix_by = blas_library().description() + ", " + std::to_string(matrix_extent) + " cubed";
}

}  // namespace

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 100 / 10);
}

std::string why_no_gpu() { return cuda_unavailable(); }

std::string cuda_bus_id(int number) {
  char id[32] = "";
  LAMINA_CUDART(cudaDeviceGetPCIBusId(id, static_cast<int>(sizeof id), number));
  return id;
}

DeviceInfo cuda_device_info(int number) {
  cudaDeviceProp properties{};
  LAMINA_CUDART(cudaGetDeviceProperties(&properties, number));
  DeviceInfo info;
  info.kind = DeviceInfo::Kind::gpu;
  info.number = number;
  info.name = properties.name;
  info.architecture = "sm_" + std::to_string(10 * properties.major + properties.minor);
  info.memory_bytes = properties.totalGlobalMem;
  info.multiprocessors = properties.multiProcessorCount;

  const MultiprocessorUnits units = units_of(properties.major, properties.minor);
  const double clock_hertz = 1e3 * attribute(cudaDevAttrClockRate, number);
  const double clocks = clock_hertz * info.multiprocessors;
  info.cores = units.fp32 * info.multiprocessors;
  info.peak_fp32 = 2 * clocks * units.fp32;
  info.peak_tf32 = 2 * clocks * units.tf32;
  info.peak_fp16 = 2 * clocks * units.fp16;
  // The bus makes two transfers per clock, and its width is in bits.
  info.peak_bytes_per_second =
      2 * 1e3 * attribute(cudaDevAttrMemoryClockRate, number) * attribute(cudaDevAttrGlobalMemoryBusWidth, number) / 8;
  return info;
}

std::vector<DeviceInfo> cuda_devices() {
  std::vector<DeviceInfo> found;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  for (int number = 0; number < count; ++number) {
    try {
      found.push_back(cuda_device_info(number));
    } catch (const DeviceError& error) {
      found.push_back({});
      found.back().kind = DeviceInfo::Kind::gpu;
      found.back().number = number;
      found.back().name = error.what();
    }
  }
  (void)cudaGetLastError();
  return found;
}

std::vector<LibraryVersion> cuda_versions() {
  int driver = 0;
  int runtime = 0;
  std::string text = "none";
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0) {
    const std::string release = driver_release();
    text = (release.empty() ? "" : release + ", ") + "for CUDA " + cuda_version_text(driver);
  }
  std::vector<LibraryVersion> versions = {{"driver", text}};
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) versions.push_back({"CUDA runtime", cuda_version_text(runtime)});
  (void)cudaGetLastError();
  return versions;
}

DeviceRates measure_cuda(int number) {
  CudaDevice device(number);
  DeviceRates rates;
  rates.copy_bytes_per_second = copy_rate(device);
  rates.units_flops_per_second = cuda_peak_flops_per_second(device, DType::f32);
  try {
    measure_matrix(device, rates);
  } catch (const LoadError& error) {
    rates.matrix_by = error.what();
  } catch (const UsageError& error) {  // an error about the environment
    rates.matrix_by = error.what();
  }
  return rates;
}

}  // namespace lamina
