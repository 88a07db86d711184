// The cases that a table of networks is made of.

#include "cases.h"

#include <fmt/format.h>

namespace lamina::bench {

std::vector<Case> cases(Workshop& workshop, const std::vector<std::string>& networks) {
  const Settings& settings = workshop.settings();
  std::vector<Case> all;
  for (const std::string& network : networks)
    for (const std::string& backend : workshop.backend_names())
      for (const int batch : settings.batches)
        all.push_back(
            {std::string(nets::info(network).name), backend, settings.dtypes.front(), settings.layouts.front(), batch});
  return all;
}

std::string to_string(const Case& c) { return fmt::format("{} on {}, batch {}", c.network, c.backend, c.batch); }

}  // namespace lamina::bench
