// Measured choices as JSON. The reader trusts nothing: anyone may have written the file.

#include "choice_file.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lamina/error.h"
#include "lib/core/files/input_file.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* format_name = "lamina choices";
constexpr int format_version = 2;
constexpr std::uint64_t longest_bytes = 64 << 20;  // a thousand times what all networks of the zoo need
constexpr Math maths[] = {Math::strict, Math::tf32};

/// Leaves out what is nested deeper than any file of ours: such values need stack for each level when they are copied,
/// printed or destroyed.
bool not_too_deep(int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw FileError(where + ": " + what + "; delete the file, or name another");
}

const Json& field(const Json& object, std::string_view name, const std::string& where) {
  const auto found = object.find(std::string(name));
  if (found == object.end()) fail(where, "no \"" + std::string(name) + "\"");
  return *found;
}

std::string text_in(const Json& object, std::string_view name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_string()) fail(where, "\"" + std::string(name) + "\" is not a text");
  return value.get<std::string>();
}

/// One text for each of the three passes.
Algorithms by_pass(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_object()) fail(where, std::string("\"") + name + "\" is not an object of three passes");
  Algorithms algorithms;
  for (std::size_t pass = 0; pass < algorithms.size(); ++pass)
    algorithms[pass] = text_in(value, to_string(algorithm_passes[pass]), where + ", \"" + name + "\"");
  return algorithms;
}

Math math_in(const Json& object, const std::string& where) {
  const std::string name = text_in(object, "math", where);
  for (const Math math : maths)
    if (to_string(math) == name) return math;
  fail(where, R"("math" is ")" + name + "\"; there are strict and tf32");
}

double max_error_in(const Json& object, const std::string& where) {
  const Json& value = field(object, "max_error", where);
  if (value.is_null()) return no_bound;
  if (!value.is_number() || !(value.get<double>() >= 0))
    fail(where, "\"max_error\" is neither null nor a number of 0 or more");
  return value.get<double>();
}

ChoiceCache::Entry entry_of(const Json& object, const std::string& where) {
  if (!object.is_object()) fail(where, "not an object");
  ChoiceCache::Entry entry;
  entry.key.backend = text_in(object, "backend", where);
  entry.key.device = text_in(object, "device", where);
  entry.key.version = text_in(object, "version", where);
  entry.key.unit = text_in(object, "unit", where);
  entry.key.named = by_pass(object, "named", where);
  entry.key.math = math_in(object, where);
  const Json& deterministic = field(object, "deterministic", where);
  if (!deterministic.is_boolean()) fail(where, "\"deterministic\" is neither true nor false");
  entry.key.deterministic = deterministic.get<bool>();
  entry.key.max_error = max_error_in(object, where);
  const Json& limit = field(object, "workspace_limit", where);
  if (!limit.is_number_unsigned()) fail(where, "\"workspace_limit\" is not a number of bytes");
  entry.key.workspace_limit = limit.get<std::size_t>();
  entry.algorithms = by_pass(object, "algorithm", where);
  return entry;
}

Json json_of(const Algorithms& algorithms) {
  Json object = Json::object();
  for (std::size_t pass = 0; pass < algorithms.size(); ++pass)
    object[std::string(to_string(algorithm_passes[pass]))] = algorithms[pass];
  return object;
}

Json json_of(const ChoiceCache::Entry& entry) {
  const ChoiceKey& key = entry.key;
  return {{"backend", key.backend},
          {"device", key.device},
          {"version", key.version},
          {"unit", key.unit},
          {"named", json_of(key.named)},
          {"math", std::string(to_string(key.math))},
          {"deterministic", key.deterministic},
          {"max_error", std::isfinite(key.max_error) ? Json(key.max_error) : Json(nullptr)},
          {"workspace_limit", key.workspace_limit},
          {"algorithm", json_of(entry.algorithms)}};
}

/// The text of the file; empty if there is none.
std::string contents(const fs::path& path) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) return {};
  InputFile file(path);
  if (file.bytes() > longest_bytes)
    fail(file.name(), "too long for a file of choices, " + std::to_string(file.bytes()) + " bytes");
  if (file.bytes() == 0) fail(file.name(), "empty");
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

ChoiceEntries read_choices(const fs::path& file) {
  const std::string name = file.string();
  const std::string text = contents(file);
  if (text.empty()) return {};
  const Json document = Json::parse(text, not_too_deep, false);
  if (document.is_discarded()) fail(name, "not JSON, or truncated");
  if (!document.is_object() || text_in(document, "format", name) != format_name)
    fail(name, std::string(R"(not a file of choices: its "format" is not ")") + format_name + "\"");
  const Json& version = field(document, "format_version", name);
  if (version.is_number_integer() && version.get<std::int64_t>() < format_version) return {};
  if (!version.is_number_integer() || version.get<std::int64_t>() != format_version)
    fail(name, "\"format_version\" is " + version.dump(-1, ' ', true, Json::error_handler_t::replace) +
                   "; this library reads " + std::to_string(format_version));
  const Json& list = field(document, "choices", name);
  if (!list.is_array()) fail(name, "\"choices\" is not a list");
  ChoiceEntries entries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = name + ", choice " + std::to_string(i + 1);
    ChoiceCache::Entry entry = entry_of(list[i], at);
    std::string key = to_string(entry.key);
    if (!entries.emplace(std::move(key), std::move(entry)).second) fail(at, "its key occurs twice");
  }
  return entries;
}

std::string choices_text(const ChoiceEntries& entries) {
  Json list = Json::array();
  for (const auto& [key, entry] : entries) list.push_back(json_of(entry));
  const Json document = {{"format", format_name}, {"format_version", format_version}, {"choices", std::move(list)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lamina
