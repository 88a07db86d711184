#pragma once
// Choices that are measured once per machine: the results are kept in a file.

#include <functional>
#include <optional>
#include <string>

#include "lamina/backend.h"
#include "lamina/choice_cache.h"

namespace lamina {

class MeasuredChoices {
 public:
  /// Reads the file, if one is named. Throws FileError, as ChoiceCache does.
  explicit MeasuredChoices(const std::string& file);

  /// The file's choice, or the one measured in turns, which is added to the file. What needs no measurement is not
  /// stored.
  MeasuredChoice measure(Backend&, const Spec&, const Choice&, void* buffer, std::size_t buffer_bytes);

  /// As above, but a function of the backend measures.
  MeasuredChoice measure(Backend&, const Spec&, const Choice&, const std::function<MeasuredChoice()>& measured);

  /// The file's choice among instruction sets, or the measured one, which is added to the file.
  std::string measure(const InstructionSetKey&, const std::function<std::string()>& measured);

 private:
  std::optional<ChoiceCache> cache_;
};

}  // namespace lamina
