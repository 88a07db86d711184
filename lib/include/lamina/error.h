#pragma once
// The errors of this library: a few kinds, each with one meaning. Also the similar names that messages suggest.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// Base of everything this library throws on purpose. The destructors are defined in the library, so that each kind has
/// one typeinfo wherever it is thrown.
class LAMINA_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// The network is wrong. The message names the node, the op and every shape.
class LAMINA_API ShapeError : public Error {
 public:
  using Error::Error;
  ~ShapeError() override;
};

/// The request is valid, but not supported: an op, algorithm, layout or type by a backend, or an operator of a file.
/// Tests and benchmarks turn this error, and only this one, into "skipped, because ...".
class LAMINA_API Unsupported : public Error {
 public:
  using Error::Error;
  ~Unsupported() override;
};

/// A call to a device or to its library failed. The message has the call, the status by name and number, the library's
/// own text, file and line.
class LAMINA_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

/// The device does not have enough memory. For a benchmark this is a result, not a failure.
class LAMINA_API OutOfMemory : public DeviceError {
 public:
  OutOfMemory(std::size_t wanted_bytes, std::size_t free_bytes, const std::string& reason = {});
  explicit OutOfMemory(const std::string& message);  ///< for a library that reports no sizes: both are 0
  ~OutOfMemory() override;
  std::size_t wanted_bytes() const noexcept { return wanted_bytes_; }
  std::size_t free_bytes() const noexcept { return free_bytes_; }

 private:
  std::size_t wanted_bytes_ = 0;
  std::size_t free_bytes_ = 0;
};

/// A shared library is missing, lacks a needed entry point, or is a mixture of versions.
class LAMINA_API LoadError : public Error {
 public:
  using Error::Error;
  ~LoadError() override;
};

/// A file is invalid. The message says which file, which entry, and what was expected.
class LAMINA_API FileError : public Error {
 public:
  using Error::Error;
  ~FileError() override;
};

/// A caller's option, name or order of calls is wrong. The message says what would be right.
class LAMINA_API UsageError : public Error {
 public:
  using Error::Error;
  ~UsageError() override;
};

/// The part of a text that a pattern has to match: the whole text, or its best part.
enum class Match { whole, part };

/// The least number of characters to change, add or drop in `pattern` so that it matches `text`.
LAMINA_API std::size_t edit_distance(std::string_view pattern, std::string_view text, Match = Match::whole);

/// A clause for the end of an error message. There are three cases:
/// - some names are near: `did you mean "resnet50" or "resnet101"?`, with up to three names, nearest first;
/// - no name is near: `valid names: "a", "b", ...`, truncated after a dozen;
/// - no name is known: `there are none`.
///
/// Near names are within an edit distance of a third of the wanted length (at least 2, case ignored), or contain the
/// wanted name.
LAMINA_API std::string near_names(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace lamina
