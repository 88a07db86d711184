// Text of a file in a message.

#include "quoted.h"

#include "utf8.h"

namespace lamina {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 120;
  std::string out = "'";
  for (const char c : text.substr(0, longest)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\x";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return to_utf8(out) + (text.size() > longest ? "...'" : "'");
}

}  // namespace lamina
