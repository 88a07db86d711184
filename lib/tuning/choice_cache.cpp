// Measured choices in a file that several processes may share.

#include "lamina/choice_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <span>
#include <utility>

#include "choice_file.h"
#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

/// Held by one process at a time, and leaves no file behind. On a file system without locks it does nothing: if two
/// processes then save at once, the choices of one may be lost, and are measured again later.
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

}  // namespace

ChoiceKey choice_key(Backend& backend, const Spec& spec, const Choice& asked) {
  return {.backend = std::string(backend.name()),
          .device = backend.device().describe(),
          .version = "lamina " LAMINA_VERSION ", " + backend.describe(),
          .unit = to_string(spec),
          .named = asked.algorithm,
          .math = asked.math,
          .deterministic = asked.deterministic,
          .max_error = asked.max_error,
          .workspace_limit = asked.workspace_limit};
}

std::string to_string(const ChoiceKey& key) {
  const std::string texts[] = {key.unit,     key.backend,  key.device,  key.version,
                               key.named[0], key.named[1], key.named[2]};
  return joined(texts) + std::string(to_string(key.math)) + (key.deterministic ? " deterministic" : " any") +
         (std::isfinite(key.max_error) ? " error " + shortest(key.max_error) : " any error") + " workspace " +
         std::to_string(key.workspace_limit);
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

void ChoiceCache::save_if_writable() const {
  if (!is_read_only(file_)) save();
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
  save_if_writable();
  return measured;
}

}  // namespace lamina
