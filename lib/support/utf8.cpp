// Text of unknown encoding, such as names of files, where UTF-8 is needed.

#include "utf8.h"

#include <algorithm>
#include <cstddef>

namespace lamina {
namespace {

bool within(unsigned char byte, unsigned char first, unsigned char last) { return first <= byte && byte <= last; }

/// Bytes of the character that begins a text, by the table of RFC 3629; 0: none does.
std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(at < text.size() ? text[at] : 0); };
  const unsigned char lead = byte(0),
                      low = lead == 0xE0   ? 0xA0
                            : lead == 0xF0 ? 0x90
                                           : 0x80,
                      high = lead == 0xED   ? 0x9F
                             : lead == 0xF4 ? 0x8F
                                            : 0xBF;
  const std::size_t length = lead < 0x80                ? 1
                             : within(lead, 0xC2, 0xDF) ? 2
                             : within(lead, 0xE0, 0xEF) ? 3
                             : within(lead, 0xF0, 0xF4) ? 4
                                                        : 0;
  if (length > 1 && !within(byte(1), low, high)) return 0;
  for (std::size_t at = 2; at < length; ++at)
    if (!within(byte(at), 0x80, 0xBF)) return 0;
  return length;
}

}  // namespace

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace lamina
