#pragma once
// One loaded cuDNN: its entry points by name, its version, where it came from. No program links cuDNN; this table is
// the only way to it, and tests fill one with functions of their own.

#include <string>
#include <type_traits>
#include <vector>

#include "entry_points.h"

namespace lamina::cudnn {

/// Members carry the C names less their "cudnn", so that code reads as the manual does. One that the library lacks is
/// null, and is named by a LoadError when it is called through LAMINA_CUDNN (call.h).
struct Api {
#define LAMINA_CUDNN_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAMINA_CUDNN_ENTRY_POINTS(LAMINA_CUDNN_MEMBER)
#undef LAMINA_CUDNN_MEMBER

  std::size_t version = 0;  ///< as the library says: 91900 for 9.19.0, 8907 for 8.9.7
  std::string directory;    ///< where its file lies; empty for a table that came from no file
  std::string unopened;     ///< parts of the directory that did not open, and why: without a driver, some of 9 do not

  int major() const;           ///< 9
  std::string number() const;  ///< "9.19.0"
};

/// Whether the version is `wanted` or later, both as (major, minor).
bool at_least(const Api&, int major, int minor);

/// A library held open: closed with its last owner.
class Library {
 public:
  /// Opens the cuDNN of a directory, all its parts from there, or, where that is empty, the one that the system's
  /// loader finds. Throws LoadError: no such file, one that does not open, an entry point of LAMINA_CUDNN_CORE missing,
  /// a version before 7. Needs no device, and says nothing of mixtures: see check_one_directory.
  explicit Library(const std::string& directory);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Api& api() const { return api_; }

 private:
  void open_parts(const std::string& directory, const std::string& front);
  void resolve(void* front);

  Api api_;
  std::vector<void*> opened_;
};

/// The directories that hold the files of cuDNN this process has mapped, sorted.
std::vector<std::string> mapped_directories();

/// To be called once the library has opened what it opens by itself (with its first convolution descriptor, or handle).
/// Throws LoadError, naming both directories, where its parts come from more than one.
void check_one_directory(const Api&);

}  // namespace lamina::cudnn
