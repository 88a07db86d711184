// cuBLAS, opened at run time.

#include "blas.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "lamina/error.h"
#include "lib/core/system/shared_library.h"

namespace lamina {
namespace {

std::string file_name(const std::string& library, int major) { return library + ".so." + std::to_string(major); }

/// Folders in which a toolkit has its libraries: the user's toolkits before the build's.
std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const home = std::getenv(variable); home != nullptr && *home != '\0')
      for (const char* const below : {"/lib64", "/lib"}) folders.push_back(std::string(home) + below);
#if defined(LAMINA_CUDA_LIBRARIES)
  folders.emplace_back(LAMINA_CUDA_LIBRARIES);
#endif
  return folders;
}

/// The library in a folder, or null with the loader's message in `tried`.
void* open_in(const std::string& folder, int major, std::string& tried) {
  const std::filesystem::path path = std::filesystem::path(folder) / file_name("libcublas", major);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    tried += "\n  " + path.string() + ": no such file";
    return nullptr;
  }
  // Its other half, cublasLt, must come from the same folder, not from the system.
  const std::filesystem::path half = path.parent_path() / file_name("libcublasLt", major);
  if (std::filesystem::exists(half, error) && dlopen(half.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    tried += "\n  " + loader_error("");
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) tried += "\n  " + loader_error("");
  return opened;
}

void* open_by_name(const std::vector<int>& majors, std::string& tried) {
  for (const int flag : {RTLD_NOLOAD, 0})
    for (const int major : majors) {
      if (void* const opened = dlopen(file_name("libcublas", major).c_str(), RTLD_NOW | RTLD_LOCAL | flag))
        return opened;
      if (flag == 0) tried += "\n  " + loader_error("");
    }
  return nullptr;
}

void* open_anywhere(const std::string& directory, const std::vector<int>& majors, std::string& tried) {
  std::vector<std::string> folders = {directory};
  if (directory.empty()) {
    if (void* const opened = open_by_name(majors, tried)) return opened;
    folders = toolkit_folders();
  }
  for (const std::string& folder : folders)
    for (const int major : majors)
      if (void* const opened = open_in(folder, major, tried)) return opened;
  return nullptr;
}

/// Fills the table; returns the names of missing entry points that are needed.
std::string resolve_all(void* library, BlasTable& table) {
  std::string missing;
#define LAMINA_ENTRY(name)             \
  resolve(library, #name, table.name); \
  if (table.name == nullptr) missing += std::string(missing.empty() ? "" : ", ") + #name
  LAMINA_ENTRY(cublasCreate_v2);
  LAMINA_ENTRY(cublasDestroy_v2);
  LAMINA_ENTRY(cublasSetStream_v2);
  LAMINA_ENTRY(cublasSetWorkspace_v2);
  LAMINA_ENTRY(cublasSetMathMode);
  LAMINA_ENTRY(cublasSgemm_v2);
  LAMINA_ENTRY(cublasDgemm_v2);
  LAMINA_ENTRY(cublasSgemmStridedBatched);
  LAMINA_ENTRY(cublasDgemmStridedBatched);
  LAMINA_ENTRY(cublasGemmEx);
  LAMINA_ENTRY(cublasGetProperty);
#undef LAMINA_ENTRY
  resolve(library, "cublasGetStatusName", table.cublasGetStatusName);
  resolve(library, "cublasGetStatusString", table.cublasGetStatusString);
  return missing;
}

std::string version_of(const BlasTable& table) {
  std::string text;
  for (const int part : {0, 1, 2}) {
    int value = 0;
    if (table.cublasGetProperty(part, &value) != cublas_number::success) return "of unknown version";
    if (part != 0) text += '.';
    text += std::to_string(value);
  }
  return text;
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "cuBLAS";
}

}  // namespace

BlasLibrary open_blas(const std::string& directory, int major) {
  const std::vector<int> majors = major == 0 ? std::vector<int>{13, 12, 11} : std::vector<int>{major};
  std::string tried;
  void* const opened = open_anywhere(directory, majors, tried);
  if (opened == nullptr)
    throw LoadError("no cuBLAS could be opened" + (directory.empty() ? "" : " in " + directory) +
                    "; install it, or set CUDA_HOME to a toolkit that has it\ntried:" + tried);
  BlasLibrary library;
  const std::string missing = resolve_all(opened, library.table);
  library.path = path_of(opened);
  if (!missing.empty()) throw LoadError(library.path + " cannot be used as cuBLAS: it lacks " + missing);
  library.version = version_of(library.table);
  return library;
}

const BlasLibrary& blas_library(const std::string& directory) {
  static std::mutex mutex;
  static std::optional<BlasLibrary> library;
  const std::lock_guard lock(mutex);
  if (!library) library = open_blas(directory);
  std::error_code error;
  const std::filesystem::path opened = std::filesystem::path(library->path).parent_path();
  if (!directory.empty() && !std::filesystem::equivalent(opened, directory, error))
    throw LoadError("cuBLAS was opened as " + library->path +
                    " before, and a process can have only one: it cannot open the one in " + directory);
  return *library;
}

}  // namespace lamina
