// The measured peak of a GPU's multiply-add units.

#include <string>

#include "cuda_device.h"
#include "kernels/timing/peak.h"
#include "lamina/error.h"
#include "lib/core/device/peak_rate.h"

namespace lamina {
namespace {

// These chains converge slowly, from both sides: their bits keep changing, as in a product.
constexpr double factor = -0.9999, addend = 0.7;

template <class T>
double measure_peak(CudaDevice& device) {
  const int blocks = cuda::peak_blocks * device.multiprocessors();
  const std::size_t threads = static_cast<std::size_t>(blocks) * cuda::peak_threads;
  const Buffer out(device, threads * sizeof(T));
  const T a = static_cast<T>(factor), b = static_cast<T>(addend);
  int last_rounds = 0;
  const auto work = [&](int rounds) {
    try {
      cuda::peak<T>(device.stream(), static_cast<T*>(out.data()), blocks, rounds, a, b);
    } catch (const cuda::LaunchError& error) {
      throw DeviceError(error.what());
    }
    last_rounds = rounds;
  };
  const double rate = peak_rate(device, cuda::peak_flops_per_round(blocks), work);
  // A rate counts only if the result is right.
  for (const std::size_t thread : {std::size_t{0}, threads / 2 + 5, threads - 1}) {
    T found = 0;
    device.download(&found, static_cast<const T*>(out.data()) + thread, sizeof(T));
    const T exact = cuda::peak_result(static_cast<std::int64_t>(thread), last_rounds, a, b);
    if (found != exact)
      throw DeviceError("the peak's kernel computed " + std::to_string(found) + " and not " + std::to_string(exact) +
                        " in thread " + std::to_string(thread));
  }
  return rate;
}

}  // namespace

double cuda_peak_flops_per_second(CudaDevice& device, DType dtype) {
  if (dtype == DType::f32) return measure_peak<float>(device);
  if (dtype == DType::f64) return measure_peak<double>(device);
  throw Unsupported("no peak is measured for " + std::string(to_string(dtype)) + " multiply-adds; ask for f32 or f64");
}

}  // namespace lamina
