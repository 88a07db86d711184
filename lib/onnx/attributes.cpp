// Attributes of a node: absent ones take the default that the operator's definition has.

#include "attributes.h"

#include <array>
#include <charconv>
#include <cmath>

#include "lamina/error.h"
#include "lib/core/text/quoted.h"

namespace lamina::onnx {

std::string Attributes::name() const {
  if (!node_->name.empty()) return std::string(node_->name);
  for (const std::string_view output : node_->outputs) {
    if (!output.empty()) return std::string(output);
  }
  return std::string(node_->op_type);
}

std::string Attributes::where() const {
  return file_ + ": node " + in_quotes(name()) + " (" + std::string(node_->op_type.substr(0, 40)) + ")";
}

void Attributes::invalid(const std::string& what) const { throw FileError(where() + " " + what); }

std::optional<AttributeValue> Attributes::find(std::string_view name) const {
  for (const AttributeMessage& attribute : node_->attributes) {
    if (attribute.name == name) return decode_attribute(attribute, where());
  }
  return std::nullopt;
}

bool Attributes::has(std::string_view name) const {
  for (const AttributeMessage& attribute : node_->attributes) {
    if (attribute.name == name) return true;
  }
  return false;
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  const std::optional<AttributeValue> value = find(name);
  return value ? value->integer.value_or(0) : otherwise;  // the format leaves out zeros
}

double Attributes::number(std::string_view name, double otherwise) const {
  const std::optional<AttributeValue> value = find(name);
  return value ? as_written(value->number.value_or(0)) : otherwise;
}

std::string Attributes::text(std::string_view name, std::string otherwise) const {
  const std::optional<AttributeValue> value = find(name);
  return value ? std::string(value->text.value_or("")) : otherwise;
}

std::optional<Extents> Attributes::integers(std::string_view name) const {
  std::optional<AttributeValue> value = find(name);
  if (!value) return std::nullopt;
  return std::move(value->integers);
}

std::vector<double> Attributes::numbers(std::string_view name) const {
  const std::optional<AttributeValue> value = find(name);
  if (!value) return {};
  return {value->numbers.begin(), value->numbers.end()};
}

std::vector<std::string_view> Attributes::texts(std::string_view name) const {
  std::optional<AttributeValue> value = find(name);
  return value ? std::move(value->texts) : std::vector<std::string_view>{};
}

std::optional<TensorMessage> Attributes::tensor(std::string_view name) const {
  std::optional<AttributeValue> value = find(name);
  return value ? std::move(value->tensor) : std::nullopt;
}

std::optional<GraphMessage> Attributes::graph(std::string_view name) const {
  std::optional<AttributeValue> value = find(name);
  return value ? std::move(value->graph) : std::nullopt;
}

Extents Attributes::list(const Constant& constant) const {
  constexpr std::int64_t longest = 4096;  // a list of equal numbers takes no room in the file
  const std::int64_t count = constant.count();
  if (constant.uniform && count > longest) invalid("takes a list of " + std::to_string(count) + " equal numbers");
  Extents all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(to_integer(constant.at(i)));
  return all;
}

double as_written(float number) {
  if (!std::isfinite(number)) return double{number};
  std::array<char, 32> digits{};
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  double result = 0;
  std::from_chars(digits.data(), end, result);
  return result;
}

std::size_t axis_of(const Attributes& attributes, std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    attributes.invalid("has the axis " + std::to_string(axis) + " of a value of " + std::to_string(rank) + " axes");
  }
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

}  // namespace lamina::onnx
