#pragma once
// The subcommand `check`: gradients against differences.

#include <string>
#include <vector>

#include "bench/io/text_table.h"
#include "bench/measure/session.h"
#include "lamina/gradient_check.h"

namespace lamina::bench {

struct CheckOptions : PlanningSettings {
  std::vector<std::string> networks{};
  GradientCheck how{.coordinates = 4, .directions = 2};
};

/// Prints of a graph, be it one layer or a network, which gradients are wrong, and the verdict; gives whether they are
/// right. `title` says what it is of. Throws what check_gradients throws.
bool check_graph(const std::string& title, const Graph&, Backend&, const Options&, const GradientCheck&, const Print&);

/// Each network on each backend, with the parameters of its file, or as they are drawn. The exit status: 1 if a
/// gradient is wrong.
int check_networks(Session&, const CheckOptions&, const Print&);

}  // namespace lamina::bench
