#pragma once
// Text of unknown encoding, such as names of files, where UTF-8 is needed.

#include <string>
#include <string_view>

namespace lamina {

/// The text with U+FFFD in place of each byte that is not of UTF-8.
std::string to_utf8(std::string_view text);

}  // namespace lamina
