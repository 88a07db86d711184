// Numbers of tensors, from the model's bytes or from external data.

#include "constant.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <system_error>

#include "lamina/error.h"
#include "lib/core/files/input_file.h"
#include "lib/core/numbers/elements.h"
#include "lib/core/numbers/float16.h"
#include "lib/core/text/utf8.h"

namespace lamina::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_elements = std::int64_t{1} << 62;

struct Kind {
  ElementType type;
  const char* name;
  std::int64_t bytes;  ///< 0 for a type without numbers
  bool is_signed = false;
  std::optional<DType> floating{};
};

/// The properties of a type. An unknown type has those of the last row.
const Kind& kind_of(ElementType type) {
  using enum ElementType;
  static const std::vector<Kind> all = {
      {f32, "f32", 4, true, DType::f32},
      {f64, "f64", 8, true, DType::f64},
      {f16, "f16", 2, true, DType::f16},
      {bf16, "bf16", 2, true, DType::bf16},
      {i8, "i8", 1, true},
      {i16, "i16", 2, true},
      {i32, "i32", 4, true},
      {i64, "i64", 8, true},
      {u8, "u8", 1},
      {u16, "u16", 2},
      {u32, "u32", 4},
      {u64, "u64", 8},
      {boolean, "bool", 1},
      {ElementType::text, "text", 0},
      {none, "no type", 0},
  };
  const auto found = std::ranges::find(all, type, &Kind::type);
  return found == all.end() ? all.back() : *found;
}

/// A little-endian whole number.
double whole(std::span<const std::byte> bytes, bool is_signed) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (!is_signed) return static_cast<double>(word);
  const unsigned unused = static_cast<unsigned>(64 - 8 * bytes.size());
  return static_cast<double>(static_cast<std::int64_t>(word << unused) >> unused);
}

std::vector<double> decoded(ElementType type, std::span<const std::byte> bytes) {
  const auto size = static_cast<std::size_t>(element_bytes(type));
  std::vector<double> values(bytes.size() / size);
  if (const std::optional<DType> dtype = floating(type)) {
    decode(*dtype, bytes, values);
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = whole(bytes.subspan(i * size, size), is_signed(type));
  return values;
}

std::uint64_t number_of(std::string_view digits, const std::string& what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw FileError(what + " has external data at " + in_quotes(digits) + ", which is not a number of bytes");
  return number;
}

/// The file of external data: in the folder of the model's path or, where the model is a link, in the folder of its
/// target. If the data is a link, its target must be in one of these folders. In a download cache both are links into
/// one folder.
fs::path external_path(std::string_view location, const fs::path& model, const std::string& what) {
  const fs::path relative(location);
  const bool leaves = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (location.empty() || location.find('\0') != std::string_view::npos || relative.is_absolute() || leaves)
    throw FileError(what + " has external data in " + in_quotes(location) + ", which is not in the model's folder");
  std::error_code error;
  const fs::path named = fs::absolute(model).parent_path(), own = fs::weakly_canonical(model).parent_path();
  const fs::path beside = fs::exists(named / relative, error) ? named : own;
  const fs::path path = fs::weakly_canonical(beside / relative, error);
  if (error) throw FileError(what + " has external data in " + in_quotes(location) + ": " + error.message());
  for (const fs::path& root : {fs::weakly_canonical(named), own})
    if (std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end()) return path;
  throw FileError(what + " has external data in " + in_quotes(location) +
                  ", a link out of the folder of the model: put the file itself there");
}

/// Throws FileError unless `had` is the number of `unit` that the extents need.
void demand(std::uint64_t needed, std::uint64_t had, const std::string& unit, const std::string& what,
            const std::string& of = "") {
  if (needed != had)
    throw FileError(what + " needs " + std::to_string(needed) + " " + unit + " by its extents, and has " +
                    std::to_string(had) + of);
}

std::vector<std::byte> external_bytes(const TensorMessage& tensor, std::uint64_t wanted, const fs::path& model,
                                      const std::string& what) {
  InputFile file(external_path(tensor.location, model, what));
  const std::uint64_t offset = tensor.offset.empty() ? 0 : number_of(tensor.offset, what);
  const std::uint64_t length = tensor.length.empty() ? wanted : number_of(tensor.length, what);
  demand(wanted, length, "bytes", what, " of external data");
  if (offset > file.bytes() || length > file.bytes() - offset)
    throw FileError(what + " needs " + std::to_string(length) + " bytes of external data at byte " +
                    std::to_string(offset) + ", but " + in_quotes(tensor.location) + " has " +
                    std::to_string(file.bytes()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  file.skip(offset);
  file.read(bytes);
  return bytes;
}

}  // namespace

std::int64_t Constant::count() const {
  return uniform ? *element_count(extents) : static_cast<std::int64_t>(values.size());
}

std::optional<std::int64_t> element_count(const Extents& extents) {
  std::int64_t count = 1;  // without the zeros, so that strides stay in range too
  bool empty = false;
  for (const std::int64_t extent : extents) {
    empty = empty || extent == 0;
    if (extent < 0 || extent > most_elements / count) return std::nullopt;
    count *= std::max<std::int64_t>(extent, 1);
  }
  return empty ? 0 : count;
}

std::string text(const Extents& extents) {
  constexpr std::size_t most = 16;  // a file may ask for any number
  std::string all;
  for (std::size_t i = 0; i < std::min(extents.size(), most); ++i)
    (all += all.empty() ? "" : "x") += std::to_string(extents[i]);
  if (extents.size() > most) all += " and " + std::to_string(extents.size() - most) + " more axes";
  return all.empty() ? "a scalar" : all;
}

std::int64_t element_bytes(ElementType type) { return kind_of(type).bytes; }
bool is_signed(ElementType type) { return kind_of(type).is_signed; }
std::optional<DType> floating(ElementType type) { return kind_of(type).floating; }
bool is_floating(ElementType type) { return floating(type).has_value(); }

std::string text(ElementType type) {
  const Kind& kind = kind_of(type);
  return kind.type == type ? kind.name : "type " + std::to_string(static_cast<int>(type));
}

std::int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int64_t>(std::clamp(std::nearbyint(value), -0x1p62, 0x1p62));
}

std::int64_t stored_numbers(const TensorMessage& tensor, const fs::path& model, std::uint64_t& external_bytes) {
  const std::int64_t count = *element_count(tensor.dims);
  if (!is_floating(tensor.type) || !(tensor.raw || tensor.external)) return 0;
  if (!tensor.external) return count;
  external_bytes += static_cast<std::uint64_t>(count * element_bytes(tensor.type));
  return external_bytes > InputFile(external_path(tensor.location, model, "")).bytes() ? 0 : count;
}

Constant read_constant(const TensorMessage& tensor, const fs::path& model, const std::string& what) {
  const std::int64_t size = element_bytes(tensor.type);
  if (size == 0) throw FileError(what + " is of " + text(tensor.type) + ", which has no numbers");
  const std::optional<std::int64_t> count = element_count(tensor.dims);
  if (!count || *count > most_elements / size)
    throw FileError(what + " has the extents " + text(tensor.dims) + ", which no memory can hold");
  const auto wanted = static_cast<std::uint64_t>(*count * size);
  Constant constant{.type = tensor.type, .extents = tensor.dims, .values = {}};
  if (tensor.external) {
    constant.values = decoded(tensor.type, external_bytes(tensor, wanted, model, what));
  } else if (tensor.raw) {
    demand(wanted, tensor.raw->size(), "bytes", what);
    constant.values = decoded(tensor.type, std::as_bytes(std::span(*tensor.raw)));
  } else {
    demand(static_cast<std::uint64_t>(*count), tensor.numbers.size(), "numbers", what);
    constant.values = tensor.numbers;
    const std::optional<DType> dtype = floating(tensor.type);
    if (dtype && size == 2) {  // as bits in int32_data
      for (double& value : constant.values)
        value = widen(*dtype, static_cast<std::uint16_t>(static_cast<std::uint64_t>(to_integer(value))));
    }
  }
  return constant;
}

}  // namespace lamina::onnx
