#pragma once
// Measured choices of algorithms and of instruction sets, kept in a JSON file: what took part in a measurement is its
// key.

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

/// What a measured choice among instruction sets of "eigen" holds for. Equal keys, equal choice.
struct InstructionSetKey {
  std::string processor;          ///< its name, as the system has it
  std::string version;            ///< of this library, and of the compiler that built it
  std::vector<std::string> sets;  ///< those that were timed, widest first
  bool operator==(const InstructionSetKey&) const = default;
};

/// One line; equal for equal keys only.
LAMINA_API std::string to_string(const InstructionSetKey&);

/// A file of measured choices, in memory. Several processes may share the file: saving adds to what others saved
/// meanwhile, under a lock of the folder, and replaces the file at once. Not for several threads.
class LAMINA_API ChoiceCache {
 public:
  struct Entry {
    ChoiceKey key;
    Algorithms algorithms;
  };
  struct InstructionSetEntry {
    InstructionSetKey key;
    std::string taken;
  };

  /// Reads the file; one that does not exist is a cache without entries. Throws FileError, naming file and entry:
  /// unreadable, not a regular file, not JSON, not of the form, of a later version of the form, a key twice.
  explicit ChoiceCache(std::filesystem::path file);

  std::optional<Algorithms> find(const ChoiceKey&) const;
  void remember(const ChoiceKey&, const Algorithms&);  ///< in memory; replaces what was there
  std::optional<std::string> find(const InstructionSetKey&) const;
  void remember(const InstructionSetKey&, const std::string& taken);  ///< likewise

  /// Throws FileError as the constructor does, and where the file cannot be written; it then is as it was.
  void save() const;

  /// What `asked` leaves open, as the file has it, or else as `measure` finds it, which is then remembered and saved.
  /// An entry with an algorithm that the backend does not have for this unit is measured anew.
  MeasuredChoice find_or_measure(Backend&, const Spec&, const Choice& asked,
                                 const std::function<MeasuredChoice()>& measure);

  /// The instruction set that the file has, or else the one that `measure` finds, which is then remembered and saved.
  /// An entry that is none of the key's sets is measured anew.
  std::string find_or_measure(const InstructionSetKey&, const std::function<std::string()>& measure);

  /// Of algorithms, by the text of their keys.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, InstructionSetEntry> instruction_sets_;
  std::map<std::string, Entry> fresh_;  ///< of these, what `remember` was told
  std::map<std::string, InstructionSetEntry> fresh_instruction_sets_;
};

}  // namespace lamina
