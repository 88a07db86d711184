#pragma once
// UTF-8, and text of unknown encoding, such as names of files, where it is needed.

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina {

struct Decoded {
  char32_t character = 0;
  std::size_t bytes = 0;  ///< 0: invalid
};

/// The character at the start of some bytes, by RFC 3629: the shortest form, no surrogates, up to U+10FFFF. There is at
/// least one byte.
Decoded decode(std::string_view bytes);

/// The text with U+FFFD in place of each byte that is not of UTF-8.
std::string to_utf8(std::string_view text);

}  // namespace lamina
