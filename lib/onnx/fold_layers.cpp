// Layers, casts and ranges on constants. Exporters write them for weights that are standardised or normalised, and for
// pads that depend on extents.

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/core/numbers/float16.h"
#include "node_context.h"

namespace lamina::onnx {
namespace {

/// A number in another type. As a floating point type it is rounded to nearest. As an integer type, an integer keeps
/// its low bits; a floating point number is truncated, then limited to the type's range (ONNX leaves this case open).
double number_as(double value, ElementType from, ElementType to) {
  if (to == ElementType::f64) return value;
  if (to == ElementType::f32) return static_cast<float>(value);
  if (to == ElementType::boolean) return value != 0;
  if (is_floating(to)) return widen(*floating(to), narrow(*floating(to), value));
  const auto bits = static_cast<int>(8 * element_bytes(to));
  const double high = std::ldexp(1, is_signed(to) ? bits - 1 : bits), low = is_signed(to) ? -high : 0;
  const bool may_wrap = !is_floating(from) && (bits < 64 || is_signed(from) != is_signed(to));
  if (may_wrap) return value - std::ldexp(1, bits) * std::floor((value - low) / std::ldexp(1, bits));
  const double last = bits == 64 ? std::nextafter(high, 0) : high - 1;
  return std::isnan(value) ? 0 : std::clamp(std::trunc(value), low, last);
}

}  // namespace

Constant fold_batch_norm(const NodeContext& node) {
  const Constant& x = node.constant(0);
  const std::int64_t channels = x.extents.size() < 2 ? 0 : x.extents[1];
  for (std::size_t i = 1; i < 5; ++i)
    if (channels == 0 || node.constant(i).count() != channels || x.count() == 0)
      node.invalid("has " + text(node.constant(i).extents) + " for the channels of " + text(x.extents));
  const std::int64_t plane = *element_count({x.extents.begin() + 2, x.extents.end()});
  const std::int64_t images = x.count() / (channels * plane);
  const bool by_batch = node.integer("training_mode", 0) != 0;
  const double epsilon = node.number("epsilon", 1e-5);
  Constant y = blank(node, x.type, x.extents);
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto for_each = [&](auto visit) {
      for (std::int64_t n = 0; n < images; ++n)
        for (std::int64_t i = 0; i < plane; ++i) visit((n * channels + c) * plane + i);
    };
    const auto average = [&](auto term) {
      double sum = 0;
      for_each([&](std::int64_t i) { sum += term(x.at(i)); });
      return sum / static_cast<double>(images * plane);
    };
    const double mean = by_batch ? average([](double a) { return a; }) : node.constant(3).at(c);
    const auto square = [&](double a) { return (a - mean) * (a - mean); };
    const double variance = by_batch ? average(square) : node.constant(4).at(c);  // the biased variance of a batch
    for_each([&](std::int64_t i) {
      y.values[static_cast<std::size_t>(i)] =
          (x.at(i) - mean) / std::sqrt(variance + epsilon) * node.constant(1).at(c) + node.constant(2).at(c);
    });
  }
  return y;
}

Constant fold_clip(const NodeContext& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool attributes = node.opset() < 11;
  const double low = attributes ? node.number("min", -infinity) : node.has(1) ? node.number(1) : -infinity;
  const double high = attributes ? node.number("max", infinity) : node.has(2) ? node.number(2) : infinity;
  Constant y = blank(node, node.constant(0).type, node.constant(0).extents);
  for (std::size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = std::min(std::max(node.constant(0).at(static_cast<std::int64_t>(i)), low), high);
  return y;
}

/// The product of rows and one matrix. A constant of one axis is one row, or one column.
Constant fold_matmul(const NodeContext& node) {
  const Constant &a = node.constant(0), &b = node.constant(1);
  if (b.extents.size() > 2)
    throw Refusal{"it multiplies by constants of more than two axes: multiply before the export"};
  if (a.extents.empty() || b.extents.empty() || a.extents.back() != b.extents.front() || b.count() == 0)
    node.invalid("multiplies " + text(a.extents) + " by " + text(b.extents));
  const std::int64_t inner = b.extents[0], columns = b.count() / inner;
  Extents extents(a.extents.begin(), a.extents.end() - 1);
  if (b.extents.size() == 2) extents.push_back(columns);
  Constant y = blank(node, a.type, std::move(extents));
  node.consume_budget(element_count({y.count(), inner}).value_or(std::numeric_limits<std::int64_t>::max()));
  for (std::int64_t i = 0; i < y.count(); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < inner; ++k) sum += a.at(i / columns * inner + k) * b.at(k * columns + i % columns);
    y.values[static_cast<std::size_t>(i)] = sum;
  }
  return y;
}

ElementType cast_type(const NodeContext& node) {
  if (node.node().op_type != "CastLike") return static_cast<ElementType>(node.integer("to", 0));
  return node.is_constant(1) ? node.constant(1, "its type").type : node.pending(1).type;
}

Constant fold_cast(const NodeContext& node) {
  const Constant& x = node.constant(0);
  const ElementType to = cast_type(node);
  if (element_bytes(to) == 0) throw Refusal{"it converts to " + text(to) + ", which is not read"};
  Constant y = with_extents(node, x, x.extents);
  y.type = to;
  for (double& value : y.values) value = number_as(value, x.type, to);
  return y;
}

Constant fold_range(const NodeContext& node) {
  const double start = node.number(0), limit = node.number(1), step = node.number(2);
  const double count = std::max(std::ceil((limit - start) / step), 0.0);
  if (step == 0 || !(count <= 0x1p40)) node.invalid("has a range without end");
  Constant y = blank(node, node.constant(0).type, {static_cast<std::int64_t>(count)});
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = start + static_cast<double>(i) * step;
  return y;
}

}  // namespace lamina::onnx
