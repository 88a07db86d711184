#pragma once
// The devices of this machine: what the system and NVIDIA's driver report of them, and their measured peaks.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// One device: the processor with all its cores, or a GPU. Unknown values are 0 or empty.
struct DeviceInfo {
  enum class Kind : std::uint8_t { processor, gpu };

  Kind kind = Kind::processor;
  int number = 0;            ///< number of a GPU: BackendOptions::device
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< name of the instruction set: "sm_90"; for a processor, the system's word: "x86_64"
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;  ///< number of a GPU's multiprocessors
  int cores = 0;            ///< CUDA cores (fp32 units), or the processor's cores that this process may use

  // Theoretical peaks in operations and bytes per second, for dense operands, from a GPU's clocks, units and bus.
  // Tensor rates are for the full chips of an architecture, with sums in fp32; some GeForce chips reach half.
  double peak_fp32 = 0, peak_tf32 = 0, peak_fp16 = 0;
  double peak_bytes_per_second = 0;
};

/// The processor first, then every GPU that NVIDIA's driver lists. Reads properties only: takes no memory, starts no
/// work. Never fails: without a driver, or in a build without CUDA, only the processor is listed.
LAMINA_API std::vector<DeviceInfo> devices();

/// Empty if devices() lists a GPU; otherwise the reason, in one line.
LAMINA_API std::string why_no_gpu();

struct LibraryVersion {
  std::string name;     ///< "driver", "CUDA runtime", "cuBLAS", "cuDNN"
  std::string version;  ///< version, or why it is unknown
};

/// The software that drives the GPUs of this machine. With `loaded`, opens the cuBLAS and cuDNN that the system finds,
/// to read their versions; they stay open. Do not use `loaded` in a process that may later open another cuDNN.
LAMINA_API std::vector<LibraryVersion> device_libraries(bool loaded);

/// Measured peaks of a device; 0: not measured.
struct DeviceRates {
  double copy_bytes_per_second = 0;    ///< rate of copying a large block in its memory, bytes read plus written
  double triad_bytes_per_second = 0;   ///< rate of a processor for a[i] = b[i] + s c[i], on every core, 24 bytes per i
  double units_flops_per_second = 0;   ///< rate of a GPU for fp32 multiply-adds in registers, operations per second
  double matrix_flops_per_second = 0;  ///< rate of a large fp32 matrix product in strict math, operations per second
  double tf32_matrix_flops_per_second = 0;  ///< rate of a GPU for the same product, its factors rounded to tf32
  std::string matrix_by;                    ///< "cuBLAS 13.1.0, 4096 cubed", or why it was not measured
};

/// Takes about a second and at most 1 GiB of the device's memory. For a processor the rates of units and matrices stay
/// 0, because its backend measures them. Any thread may call `stop`. Once it returns true, the measurement of a
/// processor ends, and rates that are not measured yet are 0. Throws DeviceError, OutOfMemory.
LAMINA_API DeviceRates measure(const DeviceInfo&, const std::function<bool()>& stop = {});

}  // namespace lamina
