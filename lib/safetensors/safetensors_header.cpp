// Reading a safetensors header. JSON events drive a small state machine. A document tree would merge duplicate keys
// silently and grow with the nesting of a hostile file.

#include "safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lamina/error.h"
#include "lib/core/text/utf8.h"

namespace lamina {
namespace {

using Json = nlohmann::json;

std::size_t element_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::size_t> known[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, bytes] : known)
    if (name == dtype) return bytes;
  return 0;
}

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  std::vector<HeaderEntry> take() { return std::move(entries_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override { refuse("the number " + in_quotes(text)); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ == Where::extents) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail("has the extent " + std::to_string(value) + ", beyond 2^63 - 1");
      entry_.extents.push_back(static_cast<std::int64_t>(value));
    } else if (where_ == Where::offsets) {
      if (offsets_ == 2) fail("has more than two data_offsets");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      refuse("the number " + std::to_string(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (where_ == Where::metadata) return true;
    if (where_ != Where::dtype) refuse("the string " + in_quotes(value));
    entry_.dtype = value;
    where_ = Where::tensor;
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::start) {
      where_ = Where::names;
    } else if (where_ == Where::name) {
      where_ = in_metadata_ ? Where::metadata : Where::tensor;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& key) override {
    if (where_ == Where::names) {
      if (!names_.insert(key).second) throw FileError(file_ + ": the header has " + in_quotes(key) + " twice");
      entry_ = {};
      entry_.name = key;
      fields_.clear();
      offsets_ = 0;
      in_metadata_ = key == "__metadata__";
      where_ = Where::name;
      return true;
    }
    if (!fields_.insert(key).second) fail("has " + in_quotes(key) + " twice");
    if (where_ == Where::metadata) return true;
    if (key == "dtype") {
      where_ = Where::dtype;
    } else if (key == "shape") {
      where_ = Where::shape;
    } else if (key == "data_offsets") {
      where_ = Where::offset_pair;
    } else {
      fail("has the unknown field " + in_quotes(key));
    }
    return true;
  }

  bool end_object() override {
    if (where_ == Where::names) {
      where_ = Where::end;
      return true;
    }
    if (where_ == Where::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.contains(field)) fail(std::string("has no ") + field);
      entries_.push_back(std::move(entry_));
    }
    where_ = Where::names;
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ == Where::shape) {
      where_ = Where::extents;
    } else if (where_ == Where::offset_pair) {
      where_ = Where::offsets;
    } else {
      refuse("an array");
    }
    return true;
  }

  bool end_array() override {
    if (where_ == Where::offsets && offsets_ != 2) fail("has fewer than two data_offsets");
    where_ = Where::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    std::string after = entry_.name.empty() ? "" : ", in or after tensor " + in_quotes(entry_.name);
    throw FileError(file_ + ": the header is not JSON at its byte " + std::to_string(position) + after);
  }

 private:
  /// The object or array that the next event belongs to.
  enum class Where { start, names, name, metadata, tensor, dtype, shape, extents, offset_pair, offsets, end };

  static std::string_view wanted(Where where) {
    switch (where) {
      case Where::name: return "an object";
      case Where::metadata: return "strings only";
      case Where::dtype: return "a string for dtype";
      case Where::shape: return "an array for shape";
      case Where::extents: return "whole numbers in shape";
      case Where::offset_pair: return "an array for data_offsets";
      case Where::offsets: return "whole numbers in data_offsets";
      case Where::start:
      case Where::names:
      case Where::tensor:
      case Where::end: break;
    }
    return "an object of tensors";
  }

  [[noreturn]] void refuse(const std::string& found) const {
    fail("should have " + std::string(wanted(where_)) + ", but has " + found);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(file_ + ": tensor " + in_quotes(entry_.name) + " " + what);
  }

  const std::string& file_;
  Where where_ = Where::start;
  bool in_metadata_ = false;
  HeaderEntry entry_;
  int offsets_ = 0;
  std::set<std::string> names_, fields_;
  std::vector<HeaderEntry> entries_;
};

/// Throws FileError unless the entry's type is known and its extents and offsets give the same number of bytes.
void check(HeaderEntry& entry, std::uint64_t data_bytes, const std::string& file) {
  const std::string tensor = file + ": tensor " + in_quotes(entry.name);
  entry.element_bytes = element_bytes(entry.dtype);
  if (entry.element_bytes == 0) throw FileError(tensor + " has the unknown dtype " + in_quotes(entry.dtype));
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw FileError(tensor + " is at bytes " + std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
                    ", but the file has " + std::to_string(data_bytes) + " bytes of data");
  std::uint64_t bytes = entry.element_bytes;
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

}  // namespace

std::vector<HeaderEntry> parse_header(std::string_view header, std::uint64_t data_bytes, const std::string& file) {
  if (!header.starts_with('{')) throw FileError(file + ": the header does not begin with '{'");
  const std::size_t last = header.find_last_not_of(' ');
  if (header[last] != '}') throw FileError(file + ": the header does not end with '}' and spaces");

  HeaderReader reader(file);
  Json::sax_parse(header.begin(), header.end(), &reader);
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

}  // namespace lamina
