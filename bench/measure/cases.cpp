// The cases that a table of networks is made of.

#include "cases.h"

#include <fmt/format.h>

namespace lamina::bench {

std::vector<Case> cases(Workshop& workshop) {
  const BenchOptions& options = workshop.options();
  std::vector<Case> all;
  for (const std::string& network : options.networks)
    for (const std::string& backend : workshop.backend_names())
      for (const int batch : options.batches)
        all.push_back(
            {std::string(nets::info(network).name), backend, options.dtypes.front(), options.layouts.front(), batch});
  return all;
}

std::string to_string(const Case& c) { return fmt::format("{} on {}, batch {}", c.network, c.backend, c.batch); }

}  // namespace lamina::bench
