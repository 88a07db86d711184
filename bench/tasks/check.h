#pragma once
// The subcommand `check`: gradients against differences.

#include <string>
#include <vector>

#include "bench/io/text.h"
#include "bench/measure/session.h"
#include "lamina/gradient_check.h"

namespace lamina::bench {

struct CheckOptions : PlanningSettings {
  std::vector<std::string> networks{};
  GradientCheck how{.coordinates = 4, .directions = 2};
};

/// Prints of each network, or layer, on each backend which gradients are wrong, and the verdict. Networks have the
/// parameters of their file, or drawn ones. The exit status: 1 if a gradient is wrong, or a backend does not support
/// one.
int check_networks(Session&, const CheckOptions&, const Print&);

}  // namespace lamina::bench
