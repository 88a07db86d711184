// One network on one backend.

#include "config.h"

#include <fmt/format.h>

#include "lamina/error.h"
#include "networks.h"

namespace lamina::bench {

std::vector<Config> configs(Backends& backends, const ConfigSettings& settings, const NetSettings& net,
                            const std::vector<std::string>& names) {
  if (settings.dtypes.size() > 1 || settings.layouts.size() > 1)
    throw UsageError("this command takes one --dtype and one --layout; `run` and `sweep` take several");
  std::vector<Config> all;
  for (const std::string& name : names) {
    const Network its = network(name, net);
    for (const std::string& backend : backends.names())
      for (const int batch : its.layer != nullptr ? std::vector<int>{its.layer->x.n} : settings.batches)
        all.push_back({its.name, backend, settings.dtypes.front(), settings.layouts.front(), batch});
  }
  return all;
}

std::string to_string(const Config& c) { return fmt::format("{} on {}, batch {}", c.network, c.backend, c.batch); }

}  // namespace lamina::bench
