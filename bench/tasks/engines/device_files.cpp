// What --device names: a known set of properties, or a file.

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/io/result_file.h"
#include "device_sets.h"
#include "lamina/error.h"

namespace lamina::bench {

using json = nlohmann::ordered_json;

std::string device_properties(const std::string& name) {
  if (const auto known = device_sets().find(name); known != device_sets().end()) return known->second;
  std::vector<std::string> names;
  for (const auto& [each, text] : device_sets()) names.push_back(each);
  const std::string what_there_is = fmt::format(
      "valid names: {}; else give a JSON file of a device's properties, with the "
      "keys of bench/devices/h200.json",
      fmt::join(names, " and "));
  std::ifstream file(name);
  if (name.empty() || !file)
    throw UsageError(fmt::format("no device \"{}\", and no such file: {}", name, what_there_is));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const json read = json::parse(text, not_too_deep, false);
  if (!read.is_object()) throw UsageError(fmt::format("{} does not hold a JSON object: {}", name, what_there_is));
  return text;
}

std::string missing_properties(const std::string& text) {
  const json read = json::parse(text, not_too_deep, false);
  const json known = json::parse(device_sets().at("h200"));
  std::vector<std::string> missing;
  for (const auto& [key, value] : known.items())
    if (!read.contains(key)) missing.push_back(key);
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace lamina::bench
