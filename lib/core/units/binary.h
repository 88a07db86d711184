#pragma once
// Functions of two elements: their names, their cost, what their gradients read, and the places of repeated elements.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lamina/op.h"

namespace lamina {

/// The name and the cost of a function.
struct BinaryRow {
  std::string_view name;           ///< name of the op
  std::array<double, 2> backward;  ///< operations for each element of y, by input
};

/// Rows by function, in the order of the enumeration.
inline constexpr std::array<BinaryRow, 6> binary_rows{{
    {"broadcast_add", {0, 0}},
    {"subtract", {0, 1}},
    {"multiply", {1, 1}},
    {"divide", {1, 4}},   // dy / b; -dy (a / b) / b
    {"maximum", {2, 2}},  // comparison; dy, its half or 0
    {"minimum", {2, 2}},
}};

/// Throws std::out_of_range for an invalid enumerator.
inline const BinaryRow& row_of(BinaryFunction function) { return binary_rows.at(static_cast<std::size_t>(function)); }

/// Whether the gradient of input `of` reads the input `which`.
constexpr bool gradient_reads(BinaryFunction function, int of, int which) {
  switch (function) {
    case BinaryFunction::add:
    case BinaryFunction::subtract: return false;
    case BinaryFunction::multiply: return which != of;
    case BinaryFunction::divide: return which == 1 || of == 1;
    case BinaryFunction::maximum:
    case BinaryFunction::minimum: break;
  }
  return true;
}

/// The distance from an element to the next one in x[0], x[1] and y. 0: the element repeats.
using BinarySteps = std::array<std::int64_t, 3>;

/// An axis of the images of y. Neighbouring axes along which the same inputs repeat are joined into one.
struct BinaryAxis {
  std::int64_t extent;
  BinarySteps steps;
};

/// The axes of y, at least one, outermost first. Extents of 1 are left out.
inline std::vector<BinaryAxis> binary_axes(const Shape& a, const Shape& b) {
  std::vector<BinaryAxis> axes;
  BinarySteps dense = {1, 1, 1};
  const std::array<std::array<int, 2>, 3> extents = {{{a.w, b.w}, {a.h, b.h}, {a.c, b.c}}};
  for (const auto& [of_a, of_b] : extents) {
    const std::int64_t extent = std::max(of_a, of_b);
    const BinarySteps steps = {of_a == 1 ? 0 : dense[0], of_b == 1 ? 0 : dense[1], dense[2]};
    dense = {dense[0] * of_a, dense[1] * of_b, dense[2] * extent};
    if (extent == 1) continue;
    const bool joins = !axes.empty() && (axes.back().steps[0] == 0) == (steps[0] == 0) &&
                       (axes.back().steps[1] == 0) == (steps[1] == 0);
    joins ? void(axes.back().extent *= extent) : axes.push_back({extent, steps});
  }
  if (axes.empty()) axes.push_back({1, dense});
  std::ranges::reverse(axes);
  return axes;
}

/// Number of places along the axes: the product of their extents.
inline std::int64_t places_along(std::span<const BinaryAxis> axes) {
  std::int64_t count = 1;
  for (const BinaryAxis& axis : axes) count *= axis.extent;
  return count;
}

/// The offsets in x[0], x[1] and y of the index-th place along the axes.
inline BinarySteps place_at(std::span<const BinaryAxis> axes, std::int64_t index) {
  BinarySteps at = {};
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t rest = i == 0 ? 0 : index / axes[i].extent, here = index - rest * axes[i].extent;
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += here * axes[i].steps[k];
    index = rest;
  }
  return at;
}

}  // namespace lamina
