#pragma once
// One loaded cuDNN: its entry points by name, its version, its origin. No program links cuDNN: all calls use this
// table, and tests fill a table with their own functions.

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "entry_points.h"

namespace lamina::cudnn {

/// Members have the C names without "cudnn", so code reads like the manual. A missing function is null; calling it
/// through LAMINA_CUDNN (call.h) throws a LoadError that names it.
struct Api {
#define LAMINA_CUDNN_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAMINA_CUDNN_ENTRY_POINTS(LAMINA_CUDNN_MEMBER)
#undef LAMINA_CUDNN_MEMBER

  std::size_t version = 0;  ///< version, as the library reports it: 91900 for 9.19.0, 8907 for 8.9.7
  std::string directory;    ///< the folder of its file; empty for a table that came from no file
  std::string unopened;     ///< parts of the directory that did not open, and why; some parts of 9 need a driver

  int major() const;           ///< 9
  std::string number() const;  ///< "9.19.0"
};

/// The path without links; unchanged if nothing is there.
std::string canonical(const std::string& path);

/// Whether the version is major.minor or later.
bool at_least(const Api&, int major, int minor);

/// An open library: its destructor closes it.
class Library {
 public:
  /// Opens the cuDNN of a directory with all its parts, or, if `directory` is empty, the cuDNN that the system's loader
  /// finds. Throws LoadError for a file that is missing or does not open, a missing entry point of LAMINA_CUDNN_CORE,
  /// or a version before 7. Needs no device, and does not check for mixtures: see check_one_directory.
  explicit Library(const std::string& directory);

  const Api& api() const { return api_; }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  /// Returns whether the file opens.
  bool open(const std::string& file, int flags = 0);
  void open_parts(const std::string& directory, const std::string& front);
  void resolve(void* front);

  Api api_;
  std::vector<std::unique_ptr<void, Close>> opened_;
};

/// The directories of the cuDNN files that this process has mapped, sorted.
std::vector<std::string> mapped_directories();

/// Call it after the library has opened its parts (with its first convolution descriptor, or handle). Throws LoadError,
/// which names both directories, if the parts come from more than one directory.
void check_one_directory(const Api&);

}  // namespace lamina::cudnn
