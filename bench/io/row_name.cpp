// The name of a row.

#include "row_name.h"

#include <fmt/format.h>

namespace lamina::bench {

std::string row_name(const nlohmann::ordered_json& key) {
  std::string name = key.at("what").get<std::string>();
  for (const char* field : {"network", "layer", "part", "backend", "algorithm", "type", "layout"})
    if (const auto found = key.find(field); found != key.end() && !found->get<std::string>().empty())
      name += "/" + found->get<std::string>();
  name += fmt::format("/batch:{}", key.at("batch").get<int>());
  if (key.contains("differs"))
    for (const auto& [what, value] : key["differs"].items())
      name += "/" + what + (value == "" ? "" : ":" + value.get<std::string>());
  return name;
}

}  // namespace lamina::bench
