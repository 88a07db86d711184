// Opens a cuDNN, and reads from the process's memory map which of its files are mapped.

#include "api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "call.h"
#include "lamina/error.h"
#include "lib/core/system/shared_library.h"

namespace lamina::cudnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* majors[] = {"9", "8", "7"};  // newest first

/// The parts of cuDNN 8 and 9, each before the parts that need it. Other parts come last.
constexpr std::string_view parts[] = {"graph",
                                      "ops",
                                      "engines_precompiled",
                                      "engines_runtime_compiled",
                                      "heuristic",
                                      "ops_infer",
                                      "ops_train",
                                      "cnn",
                                      "cnn_infer",
                                      "cnn_train",
                                      "adv",
                                      "adv_infer",
                                      "adv_train"};

/// The newest libcudnn.so.9, .8 or .7 in a directory, or libcudnn.so; empty if there is none.
std::string front_in(const fs::path& directory) {
  std::error_code ignored;
  for (const char* major : majors)
    if (const fs::path path = directory / (std::string("libcudnn.so.") + major); fs::exists(path, ignored))
      return path.string();
  if (const fs::path path = directory / "libcudnn.so"; fs::exists(path, ignored)) return path.string();
  return {};
}

/// The index in `parts` of a file "libcudnn_<part><end>", or -1 for a file with another name.
int rank_of(const std::string& file, const std::string& end) {
  const std::string begin = "libcudnn_";
  if (!file.starts_with(begin) || !file.ends_with(end) || file.size() <= begin.size() + end.size()) return -1;
  const std::string part = file.substr(begin.size(), file.size() - begin.size() - end.size());
  if (part.find('.') != std::string::npos) return -1;
  return static_cast<int>(std::ranges::find(parts, part) - std::begin(parts));
}

/// The file that contains an address.
std::string file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

}  // namespace

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  return error ? path : found.string();
}

int Api::major() const { return static_cast<int>(version >= 10000 ? version / 10000 : version / 1000); }

std::string Api::number() const {
  const std::size_t unit = version >= 10000 ? 10000 : 1000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

bool at_least(const Api& api, int major, int minor) {
  const int has = static_cast<int>(api.version % (api.version >= 10000 ? 10000 : 1000) / 100);
  return api.major() > major || (api.major() == major && has >= minor);
}

Library::Library(const std::string& directory) {
  if (!directory.empty()) {
    const std::string path = front_in(directory);
    if (path.empty())
      throw LoadError("no cuDNN in " + directory +
                      ": there is no libcudnn.so.9, .8 or .7; give the directory that "
                      "holds it (backend cudnn:<directory>)");
    open_parts(directory, path);
  } else {
    std::string reasons;
    for (const char* major : majors) {
      if (opened_.empty() && !open(std::string("libcudnn.so.") + major))
        reasons += (reasons.empty() ? "" : "; ") + loader_error("no reason given");
    }
    if (opened_.empty())
      throw LoadError("the system finds no cuDNN (" + reasons +
                      "); install one, or name the directory that holds it (backend cudnn:<directory>)");
  }
  resolve(opened_.front().get());
}

void Library::Close::operator()(void* handle) const { dlclose(handle); }

bool Library::open(const std::string& file, int flags) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | flags);
  if (handle != nullptr) opened_.emplace_back(handle);
  return handle != nullptr;
}

void Library::open_parts(const std::string& directory, const std::string& front) {
  if (!open(front)) throw LoadError("cannot open " + front + ": " + loader_error("no reason given"));
  // The library opens its parts by file name alone. So it gets the parts of this directory, which are open already.
  const std::string end = fs::path(front).filename().string().substr(std::strlen("libcudnn"));
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (const int rank = rank_of(entry->path().filename().string(), end); rank >= 0)
      found.emplace_back(rank, entry->path().string());
  if (error) throw LoadError("cannot list the parts of cuDNN in " + directory + ": " + error.message());
  std::sort(found.begin(), found.end());
  for (const auto& part : found) {
    // 9.28 has caches of compiled kernels that live until the process ends, and whose code is in this part.
    const int stays = part.second.find("_runtime_compiled.") != std::string::npos ? RTLD_NODELETE : 0;
    if (!open(part.second, stays))
      api_.unopened += (api_.unopened.empty() ? "" : "; ") + loader_error("no reason given");
  }
}

void Library::resolve(void* front) {
#define LAMINA_CUDNN_RESOLVE(name, ...) \
  api_.name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(dlsym(front, "cudnn" #name));
  LAMINA_CUDNN_ENTRY_POINTS(LAMINA_CUDNN_RESOLVE)
#undef LAMINA_CUDNN_RESOLVE
  if (api_.GetVersion == nullptr) throw LoadError("this is not cuDNN: it has no entry point cudnnGetVersion");
  api_.version = api_.GetVersion();
  api_.directory = fs::path(canonical(file_of(reinterpret_cast<const void*>(api_.GetVersion)))).parent_path().string();
  if (api_.major() < 7)
    throw LoadError("cuDNN " + api_.number() + " in " + api_.directory + " is too old; give 7.0 or later");
#define LAMINA_CUDNN_DEMAND(name, ...) \
  if (api_.name == nullptr) missing(api_, "cudnn" #name);
  LAMINA_CUDNN_CORE(LAMINA_CUDNN_DEMAND)
#undef LAMINA_CUDNN_DEMAND
}

std::vector<std::string> mapped_directories() {
  std::set<std::string> directories;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const fs::path path = line.substr(at);
    const std::string file = path.filename().string();
    if (file.starts_with("libcudnn") && file.find(".so") != std::string::npos)
      directories.insert(path.parent_path().string());
  }
  return {directories.begin(), directories.end()};
}

void check_one_directory(const Api& api) {
  if (api.directory.empty()) return;  // not from a file
  for (const std::string& directory : mapped_directories())
    if (directory != api.directory)
      throw LoadError("parts of two versions of cuDNN are loaded: from " + api.directory + " and from " + directory +
                      "; only one directory may be used in a process (look for it in LD_LIBRARY_PATH)");
}

}  // namespace lamina::cudnn
