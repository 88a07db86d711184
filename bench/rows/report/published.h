#pragma once
// The published times of the same networks (batch 16, 3x224x224), as the program carries them.

#include <string>
#include <vector>

namespace lamina::bench {

struct Published {
  std::string source;  ///< "cnn-benchmarks"; several where they print the same
  std::string network;
  std::string device;
  std::string cudnn;  ///< its version; "None": other kernels on a GPU; "cpu": a processor
  double forward_ms = 0, backward_ms = 0, total_ms = 0;
};

/// Of one network, fastest first.
std::vector<Published> published_times(const std::string& network);

}  // namespace lamina::bench
