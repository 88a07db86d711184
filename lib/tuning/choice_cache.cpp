// Measured choices in a JSON file that several processes may share.

#include "lamina/tuning.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lib/core/files/input_file.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The entries of a file, each by the text of its key.
using ChoiceEntries = std::map<std::string, ChoiceCache::Entry>;

/// A lock of the file's folder. One process at a time holds it, and no lock file is made. On a file system without
/// locks it does nothing: if two processes then save at once, the choices of one process may be lost, and are measured
/// again later.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& file) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ >= 0) (void)::flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;  // one owner of the descriptor

 private:
  int descriptor_;
};

/// Whether the file or its folder may be read but not written, for instance because many share it.
bool is_read_only(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::exists(file, error) ? fs::canonical(file, error) : file;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const auto refused = [](const fs::path& path) {
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS);
  };
  return refused(folder) || refused(target);
}

/// Texts joined, each with its length, so that "a|b" differs from "a" and "b".
std::string joined(std::span<const std::string> texts) {
  std::string line;
  for (const std::string& one : texts) line += std::to_string(one.size()) + ":" + one + " ";
  return line;
}

bool known(const Backend& backend, const Spec& spec, const Algorithms& algorithms) {
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    if (algorithms[i].empty()) continue;
    const std::vector<std::string> there = backend.algorithms(spec, algorithm_passes[i]);
    if (std::find(there.begin(), there.end(), algorithms[i]) == there.end()) return false;
  }
  return true;
}

// ---- The file as JSON. The reader trusts nothing: anyone may have written it. ----

constexpr const char* format_name = "lamina choices";
constexpr int format_version = 2;
constexpr std::uint64_t longest_bytes = 64 << 20;  // a thousand times what all networks of the zoo need

/// Leaves out values that are nested deeper than in any file of choices: they need stack for each level when they are
/// copied, printed or destroyed.
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
  for (const Math math : {Math::strict, Math::tf32})
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
  entry.key.asked.algorithm = by_pass(object, "named", where);
  entry.key.asked.math = math_in(object, where);
  const Json& deterministic = field(object, "deterministic", where);
  if (!deterministic.is_boolean()) fail(where, "\"deterministic\" is neither true nor false");
  entry.key.asked.deterministic = deterministic.get<bool>();
  entry.key.asked.max_error = max_error_in(object, where);
  const Json& limit = field(object, "workspace_limit", where);
  if (!limit.is_number_unsigned()) fail(where, "\"workspace_limit\" is not a number of bytes");
  entry.key.asked.workspace_limit = limit.get<std::size_t>();
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
          {"named", json_of(key.asked.algorithm)},
          {"math", std::string(to_string(key.asked.math))},
          {"deterministic", key.asked.deterministic},
          {"max_error", std::isfinite(key.asked.max_error) ? Json(key.asked.max_error) : Json(nullptr)},
          {"workspace_limit", key.asked.workspace_limit},
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

/// Without a file there are no entries. Throws FileError.
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

}  // namespace

ChoiceKey choice_key(Backend& backend, const Spec& spec, const Choice& asked) {
  ChoiceKey key{std::string(backend.name()), backend.device().describe(),
                "lamina " LAMINA_VERSION ", " + backend.describe(), to_string(spec), asked};
  key.asked.measure = false;
  key.asked.joins_gradients = true;  // each pass is measured alone
  return key;
}

std::string to_string(const ChoiceKey& key) {
  const Choice& asked = key.asked;
  const std::string texts[] = {key.unit, key.backend, key.device, key.version};
  return joined(texts) + joined(asked.algorithm) + std::string(to_string(asked.math)) +
         (asked.deterministic ? " deterministic" : " any") +
         (std::isfinite(asked.max_error) ? " error " + shortest(asked.max_error) : " any error") + " workspace " +
         std::to_string(asked.workspace_limit);
}

ChoiceCache::ChoiceCache(fs::path file) : file_(std::move(file)), entries_(read_choices(file_)) {}

std::optional<Algorithms> ChoiceCache::find(const ChoiceKey& key) const {
  const auto found = entries_.find(to_string(key));
  if (found == entries_.end()) return std::nullopt;
  return found->second.algorithms;
}

void ChoiceCache::remember(const ChoiceKey& key, const Algorithms& algorithms) {
  const std::string name = to_string(key);
  entries_.insert_or_assign(name, Entry{key, algorithms});
  fresh_.insert_or_assign(name, Entry{key, algorithms});
}

void ChoiceCache::save() const {
  const FolderLock lock(file_);
  ChoiceEntries all = read_choices(file_);
  for (const auto& [name, entry] : fresh_) all.insert_or_assign(name, entry);
  const std::string document = choices_text(all);
  NewFile file(file_);
  file.write(std::as_bytes(std::span(document)));
  file.keep();
}

MeasuredChoice ChoiceCache::find_or_measure(Backend& backend, const Spec& spec, const Choice& asked,
                                            const std::function<MeasuredChoice()>& measure) {
  const ChoiceKey key = choice_key(backend, spec, asked);
  if (const std::optional<Algorithms> found = find(key); found && known(backend, spec, *found)) {
    Choice choice = asked;
    choice.algorithm = *found;
    return {choice};
  }
  MeasuredChoice measured = measure();
  remember(key, measured.choice.algorithm);
  if (!is_read_only(file_)) save();
  return measured;
}

}  // namespace lamina
