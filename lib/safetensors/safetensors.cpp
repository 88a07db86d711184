// Reading and writing safetensors files: eight bytes of header length, the header, the data. The header is a JSON
// object with each tensor's type, extents and position in the data. It is read part by part while it is parsed.

#include "lamina/safetensors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lib/core/files/input_file.h"
#include "lib/core/numbers/elements.h"
#include "lib/core/text/utf8.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header_bytes = 100'000'000;  // the limit of the format's own implementation
constexpr std::size_t chunk_elements = 4096;

/// A type of the format.
struct StoredType {
  std::string_view name;
  std::size_t bytes;           ///< bytes of an element
  std::optional<DType> dtype;  ///< none: not a floating point type, so its tensors are skipped
};
constexpr StoredType stored_types[] = {
    {"F64", 8, DType::f64}, {"F32", 4, DType::f32}, {"F16", 2, DType::f16}, {"BF16", 2, DType::bf16}, {"I64", 8, {}},
    {"I32", 4, {}},         {"I16", 2, {}},         {"I8", 1, {}},          {"U64", 8, {}},           {"U32", 4, {}},
    {"U16", 2, {}},         {"U8", 1, {}},          {"BOOL", 1, {}}};

/// One tensor of the header.
struct HeaderEntry {
  std::string name;
  std::string dtype;  ///< element type as written: "F32"
  const StoredType* type = nullptr;
  std::vector<std::int64_t> extents;
  std::uint64_t begin = 0, end = 0;  ///< first byte and the byte after the last, counted from the start of the data
};

/// Collects the entries while the header is parsed. A tensor is at depth 1, its fields at 2, their numbers at 3.
class HeaderReader {
 public:
  using Event = Json::parse_event_t;

  explicit HeaderReader(const std::string& file) : file_(file) {}

  /// Called for each part of the header. Returns whether the parser keeps the part in its document tree. Only open
  /// objects and arrays are kept, so that keys are not merged silently and a hostile file does not make the tree grow.
  bool operator()(int depth, Event event, const Json& value) {
    if (event == Event::key) {
      take_key(depth, value.get_ref<const std::string&>());
    } else if (event == Event::object_end) {
      if (depth == 1 && !in_metadata()) finish_entry();
    } else if (event == Event::array_end) {
      if (field_ == "data_offsets" && offsets_ != 2) fail("has fewer than two data_offsets");
    } else {
      take_value(depth, event, value);
    }
    const bool of_metadata = event == Event::key && depth == 2 && in_metadata();
    return !of_metadata && event != Event::value && event != Event::object_end && event != Event::array_end;
  }

  const std::string& name() const { return entry_.name; }
  std::vector<HeaderEntry> take() { return std::move(entries_); }

 private:
  bool in_metadata() const { return entry_.name == "__metadata__"; }

  void take_key(int depth, const std::string& key) {
    if (depth == 1) {
      if (!names_.insert(key).second) throw FileError(file_ + ": the header has " + in_quotes(key) + " twice");
      entry_ = {};
      entry_.name = key;
      fields_.clear();
      offsets_ = 0;
      return;
    }
    if (!fields_.insert(key).second) fail("has " + in_quotes(key) + " twice");
    if (!in_metadata() && key != "dtype" && key != "shape" && key != "data_offsets")
      fail("has the unknown field " + in_quotes(key));
    field_ = key;
  }

  void take_value(int depth, Event event, const Json& value) {
    const auto demand = [&](bool holds, const std::string& what) {
      if (!holds) fail("should have " + what + ", but has " + text_of(event, value));
    };
    if (depth == 1) {
      demand(event == Event::object_start, "an object");
    } else if (depth > 1 && in_metadata()) {
      demand(value.is_string(), "strings only");
    } else if (depth == 2 && field_ == "dtype") {
      demand(value.is_string(), "a string for dtype");
      entry_.dtype = value.get<std::string>();
    } else if (depth == 2) {
      demand(event == Event::array_start, "an array for " + field_);
    } else if (depth == 3) {
      demand(value.is_number_unsigned(), "whole numbers in " + field_);
      take_number(value.get<std::uint64_t>());
    }
  }

  void take_number(std::uint64_t number) {
    if (field_ == "shape") {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail("has the extent " + std::to_string(number) + ", beyond 2^63 - 1");
      entry_.extents.push_back(static_cast<std::int64_t>(number));
    } else {
      if (offsets_ == 2) fail("has more than two data_offsets");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = number;
    }
  }

  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) fail(std::string("has no ") + field);
    entries_.push_back(std::move(entry_));
  }

  static std::string text_of(Event event, const Json& value) {
    if (event != Event::value) return event == Event::object_start ? "an object" : "an array";
    if (value.is_string()) return "the string " + in_quotes(value.get_ref<const std::string&>());
    if (value.is_number_float()) return "the number " + in_quotes(value.dump());
    if (value.is_number_unsigned()) return "the number " + value.dump();
    return value.is_number() ? "a negative number" : value.is_boolean() ? "a boolean" : "null";
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(file_ + ": tensor " + in_quotes(entry_.name) + " " + what);
  }

  const std::string& file_;
  HeaderEntry entry_;
  std::string field_;
  int offsets_ = 0;
  std::set<std::string> names_, fields_;
  std::vector<HeaderEntry> entries_;
};

/// Throws FileError unless the entry's type is known and its extents and offsets give the same number of bytes.
void check(HeaderEntry& entry, std::uint64_t data_bytes, const std::string& file) {
  const std::string tensor = file + ": tensor " + in_quotes(entry.name);
  entry.type = std::ranges::find(stored_types, std::string_view(entry.dtype), &StoredType::name);
  if (entry.type == std::end(stored_types))
    throw FileError(tensor + " has the unknown dtype " + in_quotes(entry.dtype));
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw FileError(tensor + " is at bytes " + std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
                    ", but the file has " + std::to_string(data_bytes) + " bytes of data");
  std::uint64_t bytes = entry.type->bytes;
  const bool empty = std::find(entry.extents.begin(), entry.extents.end(), 0) != entry.extents.end();
  if (empty) bytes = 0;
  for (const std::int64_t extent : entry.extents) {
    if (empty) break;
    if (bytes > data_bytes / static_cast<std::uint64_t>(extent))
      throw FileError(tensor + " has extents that need more than the " + std::to_string(data_bytes) +
                      " bytes of data in the file");
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (bytes != entry.end - entry.begin)
    throw FileError(tensor + " needs " + std::to_string(bytes) + " bytes by its extents, but its data_offsets span " +
                    std::to_string(entry.end - entry.begin));
}

/// The entries of a header in order of position. Throws FileError, starting with `file`, unless the header is valid,
/// every entry's bytes match its extents, and the entries cover all `data_bytes` bytes without gap or overlap.
std::vector<HeaderEntry> parse_header(std::string_view header, std::uint64_t data_bytes, const std::string& file) {
  if (!header.starts_with('{')) throw FileError(file + ": the header does not begin with '{'");
  const std::size_t last = header.find_last_not_of(' ');
  if (header[last] != '}') throw FileError(file + ": the header does not end with '}' and spaces");

  HeaderReader reader(file);
  try {
    [[maybe_unused]] const Json nothing = Json::parse(header.begin(), header.end(), std::ref(reader));
  } catch (const Json::exception& error) {
    const auto* const at = dynamic_cast<const Json::parse_error*>(&error);
    throw FileError(file + ": the header is not JSON" +
                    (at == nullptr ? "" : " at its byte " + std::to_string(at->byte)) +
                    (reader.name().empty() ? "" : ", in or after tensor " + in_quotes(reader.name())));
  }
  std::vector<HeaderEntry> entries = reader.take();

  for (HeaderEntry& entry : entries) check(entry, data_bytes, file);
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != covered)
      throw FileError(file + ": tensor " + in_quotes(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                      (entry.begin < covered ? " and overlaps the one before, which ends at "
                                             : " and leaves a gap after the one before, which ends at ") +
                      std::to_string(covered));
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw FileError(file + ": " + std::to_string(data_bytes - covered) + " bytes at the end belong to no tensor");
  return entries;
}

HostTensor read_values(InputFile& source, HeaderEntry& entry) {
  const DType dtype = *entry.type->dtype;
  HostTensor tensor{.dtype = dtype, .extents = std::move(entry.extents), .values = {}};
  const std::size_t count = static_cast<std::size_t>(entry.end - entry.begin) / entry.type->bytes;
  try {
    tensor.values.resize(count);
  } catch (const std::bad_alloc&) {
    throw FileError(source.name() + ": there is no memory for the " + std::to_string(count) + " numbers of tensor " +
                    in_quotes(entry.name));
  }
  std::array<std::byte, chunk_elements * sizeof(double)> chunk;
  for (std::size_t first = 0; first < count; first += chunk_elements) {
    const std::span<double> values = std::span(tensor.values).subspan(first, std::min(chunk_elements, count - first));
    const std::span<std::byte> bytes = std::span(chunk).first(values.size() * entry.type->bytes);
    source.read(bytes);
    decode(dtype, bytes, values);
  }
  return tensor;
}

/// Throws FileError unless the tensor can be written: its extents match the values, its type exists in the format, and
/// its numbers fit the type.
std::string_view check(const std::string& tensor, const HostTensor& host) {
  const auto* const known = std::ranges::find(stored_types, std::optional(host.dtype), &StoredType::dtype);
  if (known == std::end(stored_types)) throw FileError(tensor + " is not of a floating point type");
  const auto& extents = host.extents;
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  std::uint64_t left = host.values.size();  // divided by each extent: a product could overflow
  bool fits = !empty || left == 0;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw FileError(tensor + " has the extent " + std::to_string(extent));
    if (empty) continue;
    fits = fits && left % static_cast<std::uint64_t>(extent) == 0;
    left /= static_cast<std::uint64_t>(extent);
  }
  if (!fits || (!empty && left != 1))
    throw FileError(tensor + " has " + std::to_string(host.values.size()) + " values, which do not fill its extents");
  for (std::size_t i = 0; i < host.values.size(); ++i)
    if (overflows(host.dtype, host.values[i]))
      throw FileError(tensor + " has " + std::to_string(host.values[i]) + " at " + std::to_string(i) +
                      ", which is out of range for " + std::string(to_string(host.dtype)));
  return known->name;
}

std::string make_header(const std::string& file, const TensorFile& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end = 0;
  for (const auto& [name, host] : tensors) {
    const std::string tensor = file + ": tensor " + in_quotes(name);
    if (name == "__metadata__") throw FileError(tensor + " has a name that is reserved by the format");
    const std::string_view dtype = check(tensor, host);
    const std::uint64_t begin = end;
    end += std::uint64_t{host.values.size()} * size_of(host.dtype);
    header[name] = {{"dtype", dtype}, {"shape", host.extents}, {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw FileError(file + ": the name of a tensor is not UTF-8");
  }
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');  // aligns the data
  if (text.size() > longest_header_bytes) throw FileError(file + ": the header would be longer than 100 MB");
  return text;
}

}  // namespace

TensorFile read_safetensors(const fs::path& path) {
  InputFile source(path);
  if (source.bytes() < length_bytes) throw FileError(source.name() + ": too short for a safetensors file");
  std::array<std::byte, length_bytes> length;
  source.read(length);
  const auto header_bytes = from_little_endian<std::uint64_t>(length.data());
  const std::uint64_t rest = source.bytes() - length_bytes;
  if (header_bytes > std::min(rest, longest_header_bytes))
    throw FileError(source.name() + ": a header of " + std::to_string(header_bytes) +
                    (header_bytes > rest
                         ? " bytes does not fit into the file: it is truncated, or not a safetensors file"
                         : " bytes is longer than 100 MB"));
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  source.read(std::as_writable_bytes(std::span(header)));

  TensorFile tensors;
  for (HeaderEntry& entry : parse_header(header, rest - header_bytes, source.name())) {
    if (entry.type->dtype)
      tensors.emplace(entry.name, read_values(source, entry));
    else
      source.skip(entry.end - entry.begin);
  }
  return tensors;
}

void write_safetensors(const fs::path& path, const TensorFile& tensors) {
  const std::string header = make_header(path.string(), tensors);
  std::array<std::byte, length_bytes> length;
  to_little_endian(length.data(), std::uint64_t{header.size()});
  NewFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span(header)));
  std::array<std::byte, chunk_elements * sizeof(double)> chunk;
  for (const auto& [name, host] : tensors) {
    for (std::size_t first = 0; first < host.values.size(); first += chunk_elements) {
      const auto values = std::span(host.values).subspan(first, std::min(chunk_elements, host.values.size() - first));
      const std::span<std::byte> bytes = std::span(chunk).first(values.size() * size_of(host.dtype));
      encode(host.dtype, values, bytes);
      file.write(bytes);
    }
  }
  file.keep();
}

}  // namespace lamina
