#pragma once
// Calls of the CUDA runtime, each checked: LAMINA_CUDART(cudaStreamCreate(&stream)).

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "lamina/error.h"

namespace lamina::cudart {

/// "cudaStreamCreate(&stream): cudaErrorInvalidValue (1): invalid argument, at cuda_raii.h:40"
inline std::string failure_text(cudaError_t status, const char* call, std::string_view file, int line) {
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return std::string(call) + ": " + cudaGetErrorName(status) + " (" + std::to_string(static_cast<int>(status)) +
         "): " + cudaGetErrorString(status) + ", at " + std::string(file) + ":" + std::to_string(line);
}

/// Throws DeviceError unless `status` is success. The runtime then forgets the error. It does not forget sticky errors
/// of the device: every later call returns these again.
inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(failure_text(status, call, file, line));
}

}  // namespace lamina::cudart

#define LAMINA_CUDART(call) ::lamina::cudart::check((call), #call, __FILE__, __LINE__)
