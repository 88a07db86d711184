// Texts as numbers: UTF-8, small letters, the sorted list of characters.

#include <algorithm>
#include <optional>
#include <string>

#include "byte_source.h"
#include "lamina/data.h"
#include "lamina/error.h"

namespace lamina {
namespace {

struct Decoded {
  char32_t character = 0;
  std::size_t bytes = 0;  // 0: invalid
};

/// The character at the start of some bytes, by RFC 3629: the shortest form, no surrogates, up to U+10FFFF.
Decoded decode(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return {};
  char32_t character = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    character = character << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < least[length] || character > 0x10FFFF || surrogate) return {};
  return {character, length};
}

char32_t small(char32_t c) {
  const bool ascii = c >= U'A' && c <= U'Z';
  const bool latin1 = c >= 0xC0 && c <= 0xDE && c != 0xD7;
  return ascii || latin1 ? c + 32 : c;
}

/// The place of the first byte that is not UTF-8, if there is one.
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
  for (std::uint32_t c = 0; c < occurs.size(); ++c) {
    if (occurs[c]) text.alphabet.push_back(static_cast<char32_t>(c));
  }
  const auto begin = text.alphabet.begin();
  for (std::uint32_t& c : characters) {
    c = static_cast<std::uint32_t>(std::lower_bound(begin, text.alphabet.end(), static_cast<char32_t>(c)) - begin);
  }
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
