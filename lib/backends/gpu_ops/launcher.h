#pragma once
// Where kernels are launched.

#include <functional>
#include <string>

#include "kernels/common/stream.h"
#include "lamina/error.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Where kernels are launched, and the backend's name for messages. `stream` is called at each launch.
struct Launcher {
  std::function<Stream()> stream;
  std::string backend;

  /// Calls work(stream), which launches. Throws DeviceError for a launch that failed.
  template <class Work>
  void launch(Work&& work) const {
    try {
      work(stream());
    } catch (const LaunchError& error) {
      throw DeviceError(backend + ": " + error.what());
    }
  }
};

}  // namespace lamina::LAMINA_CUDA_SPACE
