// Reading and writing safetensors files: eight bytes of header length, the header, the data.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lamina/safetensors.h"
#include "lib/core/files/input_file.h"
#include "lib/core/numbers/elements.h"
#include "lib/core/text/utf8.h"
#include "safetensors_header.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header_bytes = 100'000'000;  // the limit of the format's own implementation
constexpr std::size_t chunk_elements = 4096;

constexpr std::array<std::pair<DType, std::string_view>, 4> float_types = {
    {{DType::f64, "F64"}, {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"}}};

HostTensor read_values(InputFile& source, HeaderEntry& entry, DType dtype) {
  HostTensor tensor{.dtype = dtype, .extents = std::move(entry.extents), .values = {}};
  const std::size_t count = static_cast<std::size_t>(entry.end - entry.begin) / entry.element_bytes;
  try {
    tensor.values.resize(count);
  } catch (const std::bad_alloc&) {
    throw FileError(source.name() + ": there is no memory for the " + std::to_string(count) + " numbers of tensor " +
                    in_quotes(entry.name));
  }
  std::array<std::byte, chunk_elements * sizeof(double)> chunk;
  for (std::size_t first = 0; first < count; first += chunk_elements) {
    const std::span<double> values = std::span(tensor.values).subspan(first, std::min(chunk_elements, count - first));
    const std::span<std::byte> bytes = std::span(chunk).first(values.size() * entry.element_bytes);
    source.read(bytes);
    decode(dtype, bytes, values);
  }
  return tensor;
}

/// Throws FileError unless the tensor can be written: its extents match the values, its type exists in the format, and
/// its numbers fit the type.
std::string_view check(const std::string& tensor, const HostTensor& host) {
  const auto* known =
      std::find_if(float_types.begin(), float_types.end(), [&](const auto& f) { return f.first == host.dtype; });
  if (known == float_types.end()) throw FileError(tensor + " is not of a floating point type");
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
  return known->second;
}

std::string make_header(const std::string& file, const TensorFile& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
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
  } catch (const nlohmann::json::exception&) {
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
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) header_bytes |= std::to_integer<std::uint64_t>(length[i]) << (8 * i);
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
    const auto* known =
        std::find_if(float_types.begin(), float_types.end(), [&](const auto& f) { return f.second == entry.dtype; });
    if (known == float_types.end()) {
      source.skip(entry.end - entry.begin);
    } else {
      HostTensor tensor = read_values(source, entry, known->first);
      tensors.emplace(std::move(entry.name), std::move(tensor));
    }
  }
  return tensors;
}

void write_safetensors(const fs::path& path, const TensorFile& tensors) {
  const std::string header = make_header(path.string(), tensors);
  std::array<std::byte, length_bytes> length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<std::byte>(std::uint64_t{header.size()} >> (8 * i));

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
