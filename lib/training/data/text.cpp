// Texts as numbers: UTF-8, lower case, the sorted list of characters.

#include <algorithm>
#include <optional>
#include <string>

#include "byte_source.h"
#include "lamina/data.h"
#include "lamina/error.h"
#include "lib/core/text/utf8.h"

namespace lamina {
namespace {

char32_t small(char32_t c) {
  const bool ascii = c >= U'A' && c <= U'Z';
  const bool latin1 = c >= 0xC0 && c <= 0xDE && c != 0xD7;
  return ascii || latin1 ? c + 32 : c;
}

/// The position of the first byte that is not UTF-8, if there is one.
std::optional<std::size_t> decode_all(std::string_view utf8, std::vector<std::uint32_t>& characters) {
  for (std::size_t at = 0; at < utf8.size();) {
    const Decoded decoded = decode(utf8.substr(at, 4));
    if (decoded.bytes == 0) return at;
    at += decoded.bytes;
    char32_t c = small(decoded.character);
    if (c == U'\r') {
      if (at < utf8.size() && utf8[at] == '\n') continue;
      c = U'\n';
    }
    characters.push_back(static_cast<std::uint32_t>(c));
  }
  return {};
}

Text number(std::vector<std::uint32_t> characters) {
  std::vector<bool> occurs(0x110000);
  for (const std::uint32_t c : characters) occurs[c] = true;
  Text text;
  for (std::uint32_t c = 0; c < occurs.size(); ++c)
    if (occurs[c]) text.alphabet.push_back(static_cast<char32_t>(c));
  const auto begin = text.alphabet.begin();
  for (std::uint32_t& c : characters)
    c = static_cast<std::uint32_t>(std::lower_bound(begin, text.alphabet.end(), static_cast<char32_t>(c)) - begin);
  text.ids = std::move(characters);
  return text;
}

std::string complaint(std::size_t at) { return "is not UTF-8 at byte " + std::to_string(at); }

}  // namespace

Text read_text(const std::filesystem::path& path) {
  ByteSource source(path);
  const std::vector<std::uint8_t> bytes = source.rest();
  std::vector<std::uint32_t> characters;
  const std::string_view utf8(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto at = decode_all(utf8, characters)) source.fail(complaint(*at));
  return number(std::move(characters));
}

Text make_text(std::string_view utf8) {
  std::vector<std::uint32_t> characters;
  if (const auto at = decode_all(utf8, characters)) throw UsageError("make_text: the text " + complaint(*at));
  return number(std::move(characters));
}

}  // namespace lamina
