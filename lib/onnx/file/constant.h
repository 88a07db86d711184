#pragma once
// A tensor whose numbers are known while a model is read, and how it comes out of the file.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/shape.h"
#include "messages.h"

namespace lamina::onnx {

/// Role of a tensor in the model. number: it does not train. tensor: it trains as the weights of an operator.
/// parameter: it trains also where the model multiplies by it or adds it.
enum class Origin : std::uint8_t { number, tensor, parameter };

/// Numbers of any of the format's types as doubles: exact except whole numbers beyond 2^53.
struct Constant {
  ElementType type = ElementType::f32;
  Extents extents;
  std::vector<double> values;
  bool uniform = false;     ///< whether all elements are equal; `values` then has only one, to save memory
  bool of_extents = false;  ///< whether it depends on extents of dynamic values, and therefore on the batch

  Origin origin = Origin::number;  ///< its origin, or the highest of those it was computed from
  std::string_view source{};       ///< name of the value in the file that holds these numbers

  double at(std::int64_t i) const { return values[uniform ? 0 : static_cast<std::size_t>(i)]; }
  std::int64_t count() const;
};

/// Elements of a tensor, or nothing if an extent is negative or the product of those that are not 0 is
/// beyond 2^62.
std::optional<std::int64_t> element_count(const Extents&);

/// "2x3x4"; "a scalar"; of many axes the first 16, and the number of further axes.
std::string text(const Extents&);

bool is_floating(ElementType);
bool is_signed(ElementType);
std::optional<DType> floating(ElementType);
std::int64_t element_bytes(ElementType);  ///< 0 for types without numbers
/// "f32", "i64": the short name, else the number of the type.
std::string text(ElementType);

/// Whether all numbers of a list equal `number`.
template <class Number>
bool all_are(const std::vector<Number>& list, Number number) {
  return std::ranges::count(list, number) == std::ssize(list);
}

/// The nearest whole number, limited to +-2^62; 0 for a NaN.
std::int64_t to_integer(double);

/// The numbers of a tensor of the file `model`. External data must be in the folder of `model`. `what` begins the
/// messages. Throws FileError: a type without numbers, extents that do not match the data, data outside its file, a
/// location outside the folder. Memory is in proportion to the data in the file.
Constant read_constant(const TensorMessage&, const std::filesystem::path& model, const std::string& what);

/// The number of a tensor's values if the file stores them as raw or external bytes of a floating type, which take
/// about as much room as in memory. Otherwise 0. `external_bytes` counts the bytes that all tensors claim of the
/// external file. If they claim more than the file has, the number is 0.
std::int64_t stored_numbers(const TensorMessage&, const std::filesystem::path& model, std::uint64_t& external_bytes);

}  // namespace lamina::onnx
