#pragma once
// Numbers as text.

#include <array>
#include <charconv>
#include <string>

namespace lamina {

/// The shortest text that reads back as the same number.
inline std::string shortest(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

}  // namespace lamina
