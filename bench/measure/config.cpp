// One network on one backend.

#include "config.h"

#include <fmt/format.h>

#include "lamina/nets.h"

namespace lamina::bench {

std::vector<Config> configs(Backends& backends, const ConfigSettings& settings,
                            const std::vector<std::string>& networks) {
  std::vector<Config> all;
  for (const std::string& network : networks)
    for (const std::string& backend : backends.names())
      for (const int batch : settings.batches)
        all.push_back(
            {std::string(nets::info(network).name), backend, settings.dtypes.front(), settings.layouts.front(), batch});
  return all;
}

std::string to_string(const Config& c) { return fmt::format("{} on {}, batch {}", c.network, c.backend, c.batch); }

}  // namespace lamina::bench
