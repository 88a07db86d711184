#pragma once
// One network on one backend: what rows and tables are made for.

#include <string>
#include <vector>

#include "bench/machine/backends.h"

namespace lamina::bench {

struct Config {
  std::string network;
  std::string backend;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  int batch = 16;
};

/// Each of the networks on every backend and at every batch of the settings, or its layer's own, in this order; of
/// types and layouts the first. Throws UsageError for an unknown network.
std::vector<Config> configs(Backends&, const ConfigSettings&, const NetSettings&,
                            const std::vector<std::string>& networks);

/// "resnet50 on eigen, batch 16"
std::string to_string(const Config&);

}  // namespace lamina::bench
