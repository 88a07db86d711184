#pragma once
// Measured choices of algorithms, kept in a JSON file. The key of a choice is everything that the measurement depended
// on.

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/backend.h"

namespace lamina {

/// What a measured choice is valid for. Equal keys have equal choices.
struct ChoiceKey {
  std::string backend;                 ///< Backend::name()
  std::string device;                  ///< Device::describe()
  std::string version;                 ///< version of this library, and Backend::describe()
  std::string unit;                    ///< to_string(Spec): op, shapes, layouts, element types, betas
  std::array<std::string, 3> named{};  ///< names given by the caller; empty: left open. The next fields are those
                                       ///< of Choice
  Math math = Math::strict;
  bool deterministic = false;
  double max_error = no_bound;
  std::size_t workspace_limit = 0;
  bool operator==(const ChoiceKey&) const = default;
};

/// The key of a measurement on the backend's device. Reads the device's description (DeviceError if there is no
/// device).
LAMINA_API ChoiceKey choice_key(Backend&, const Spec&, const Choice& asked);

/// One line. Only equal keys have equal lines.
LAMINA_API std::string to_string(const ChoiceKey&);

/// The algorithms chosen: forward, backward_params, backward_data; empty for a pass that was not measured.
using Algorithms = std::array<std::string, 3>;

/// A file of measured choices, in memory. Several processes may share the file: saving keeps what others saved
/// meanwhile, under a lock of the folder, and replaces the file atomically. Not thread-safe.
class LAMINA_API ChoiceCache {
 public:
  struct Entry {
    ChoiceKey key;
    Algorithms algorithms;
  };

  /// Reads the file. A missing file is an empty cache, and so is one of an earlier version of the format, which the
  /// first save() replaces. Throws FileError, naming file and entry: unreadable, not a regular file, not JSON, not of
  /// this format, of a later version of the format, a repeated key.
  explicit ChoiceCache(std::filesystem::path file);

  std::optional<Algorithms> find(const ChoiceKey&) const;
  void remember(const ChoiceKey&, const Algorithms&);  ///< adds to the memory only; replaces an older entry

  /// Throws FileError as the constructor does, and if the file cannot be written; the file is then unchanged.
  void save() const;

  /// Takes what `asked` leaves open from the file, or else calls `measure`. The measured answer is remembered and also
  /// saved, unless the file or its folder is read-only. An entry that names an algorithm unknown to the backend for
  /// this unit is measured again.
  MeasuredChoice find_or_measure(Backend&, const Spec&, const Choice& asked,
                                 const std::function<MeasuredChoice()>& measure);

  /// Algorithms by the text of their keys.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  void save_if_writable() const;

  std::filesystem::path file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Entry> fresh_;  ///< the entries that `remember` added
};

}  // namespace lamina
