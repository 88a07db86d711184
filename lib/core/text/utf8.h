#pragma once
// UTF-8, and text of unknown encoding, such as file names, in places that need UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina {

struct Decoded {
  char32_t character = 0;
  std::size_t bytes = 0;  ///< length in bytes; 0: invalid
};

/// The character at the start of `bytes`, which must not be empty, by RFC 3629: the shortest form, no surrogates, up to
/// U+10FFFF.
Decoded decode(std::string_view bytes);

/// The text, with U+FFFD in place of each byte that is not UTF-8.
std::string to_utf8(std::string_view text);

/// The text in quotes for a message, as UTF-8: control characters escaped, shortened when long.
std::string in_quotes(std::string_view text);

}  // namespace lamina
