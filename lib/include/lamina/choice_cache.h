#pragma once
// Measured choices of algorithms, kept in a JSON file: what took part in the measurement is their key.

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lamina/api.h"
#include "lamina/backend.h"

namespace lamina {

/// What a measured choice holds for. Equal keys, equal choice.
struct ChoiceKey {
  std::string backend;                 ///< Backend::name()
  std::string device;                  ///< Device::describe()
  std::string version;                 ///< of this library, and Backend::describe()
  std::string unit;                    ///< to_string(Spec): op, shapes, layouts, element types, what is added to
  std::array<std::string, 3> named{};  ///< what was left open is empty; the rest as in Choice
  Math math = Math::strict;
  bool deterministic = false;
  double max_error = no_bound;
  std::size_t workspace_limit = 0;
  bool operator==(const ChoiceKey&) const = default;
};

/// The key of a measurement on the backend's device, which is asked for its description (DeviceError where there is
/// none).
LAMINA_API ChoiceKey choice_key(Backend&, const Spec&, const Choice& asked);

/// One line; equal for equal keys only.
LAMINA_API std::string to_string(const ChoiceKey&);

/// The algorithms that were taken: forward, backward_params, backward_data; empty for a pass that was not measured.
using Algorithms = std::array<std::string, 3>;

/// A file of measured choices, in memory. Several processes may share the file: saving adds to what others saved
/// meanwhile, under a lock of the folder, and replaces the file at once. Not for several threads.
class LAMINA_API ChoiceCache {
 public:
  struct Entry {
    ChoiceKey key;
    Algorithms algorithms;
  };

  /// Reads the file; one that does not exist is a cache without entries. Throws FileError, naming file and entry:
  /// unreadable, not a regular file, not JSON, not of the form, of a later version of the form, a key twice.
  explicit ChoiceCache(std::filesystem::path file);

  std::optional<Algorithms> find(const ChoiceKey&) const;
  void remember(const ChoiceKey&, const Algorithms&);  ///< in memory; replaces what was there

  /// Throws FileError as the constructor does, and where the file cannot be written; it then is as it was.
  void save() const;

  /// What `asked` leaves open, as the file has it, or else as `measure` finds it, which is then remembered and saved.
  /// An entry with an algorithm that the backend does not have for this unit is measured anew.
  Choice find_or_measure(Backend&, const Spec&, const Choice& asked, const std::function<Choice()>& measure);

  /// By the text of their keys.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Entry> fresh_;  ///< of these, what `remember` was told
};

}  // namespace lamina
