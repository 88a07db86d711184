#pragma once
// The header of a safetensors file: a JSON object with each tensor's type, extents and position in the data.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

/// One tensor of the header.
struct HeaderEntry {
  std::string name;
  std::string dtype;  ///< element type as written: "F32"
  std::size_t element_bytes = 0;
  std::vector<std::int64_t> extents;
  std::uint64_t begin = 0, end = 0;  ///< first byte and the byte after the last, counted from the start of the data
};

/// The entries in order of position. Throws FileError, starting with `file`, unless the header is valid, every entry's
/// bytes match its extents, and the entries cover all `data_bytes` bytes without gap or overlap.
std::vector<HeaderEntry> parse_header(std::string_view header, std::uint64_t data_bytes, const std::string& file);

}  // namespace lamina
