#pragma once
// Checks of enumerators that callers give, and their names. An enumerator out of range is an error.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lamina/error.h"

namespace lamina {

/// Throws UsageError if `value` is beyond `last`, the last of its enumeration. `what` names the field or argument.
template <class Enumeration>
void check_enumerator(Enumeration value, Enumeration last, const std::string& what) {
  if (static_cast<int>(value) < 0 || value > last)
    throw UsageError(what + ": invalid value " + std::to_string(static_cast<int>(value)) + ", expected 0 to " +
                     std::to_string(static_cast<int>(last)));
}

/// The name of `value`, from the names of its enumeration in order. Throws UsageError if it is out of range: "no such
/// pass: 7", where `what` is "pass".
template <class Enumeration>
std::string_view enumerator_name(Enumeration value, const char* what, std::initializer_list<std::string_view> names) {
  const auto i = static_cast<std::size_t>(value);
  if (i >= names.size()) throw UsageError(std::string("no such ") + what + ": " + std::to_string(i));
  return names.begin()[i];
}

}  // namespace lamina
