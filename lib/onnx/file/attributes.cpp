// Attributes of a node. An absent attribute has the default of the operator's definition.

#include "attributes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lamina/error.h"
#include "lib/core/text/utf8.h"

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

AttributeValue Attributes::value(std::string_view name) const {
  const auto found = std::ranges::find(node_->attributes, name, &AttributeMessage::name);
  return found == node_->attributes.end() ? AttributeValue{} : decode_attribute(*found, where());
}

bool Attributes::has(std::string_view name) const {
  return std::ranges::find(node_->attributes, name, &AttributeMessage::name) != node_->attributes.end();
}

// The format omits the value 0 of an attribute that is present.

std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? value(name).integer.value_or(0) : otherwise;
}

double Attributes::number(std::string_view name, double otherwise) const {
  return has(name) ? as_written(value(name).number.value_or(0)) : otherwise;
}

std::string Attributes::text(std::string_view name, std::string otherwise) const {
  return has(name) ? std::string(value(name).text.value_or("")) : otherwise;
}

std::optional<Extents> Attributes::integers(std::string_view name) const {
  return has(name) ? std::optional(value(name).integers) : std::nullopt;
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

bool is_any_of(std::string_view name, std::string_view words) {
  return (" " + std::string(words) + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

std::size_t axis_of(const Attributes& attributes, std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size)
    attributes.invalid("has the axis " + std::to_string(axis) + " of a value of " + std::to_string(rank) + " axes");
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

}  // namespace lamina::onnx
