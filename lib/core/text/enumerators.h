#pragma once
// Enumerators from callers: one out of range is an error.

#include <string>

#include "lamina/error.h"

namespace lamina {

/// Throws UsageError if `value` is beyond `last`, the last of its enumeration. `what` names the field or argument.
template <class Enumeration>
void check_enumerator(Enumeration value, Enumeration last, const std::string& what) {
  if (static_cast<int>(value) < 0 || value > last)
    throw UsageError(what + ": invalid value " + std::to_string(static_cast<int>(value)) + ", expected 0 to " +
                     std::to_string(static_cast<int>(last)));
}

}  // namespace lamina
