#pragma once
// Axes that an op works along, as one axis of an image.

#include <utility>

#include "lamina/op.h"

namespace lamina {

/// An image in c, h, w order, seen as repeats x outer x cells x inner elements, where inner elements are adjacent. For
/// each pair of an outer and an inner index, Reduce makes one number from the cells of all repeats, and Softmax makes
/// one number from each cell.
struct AxisCells {
  int repeats, outer, cells, inner;
};

inline AxisCells along(const Shape& x, bool channels, bool rows, bool columns) {
  if (channels && columns && !rows) return {x.c, x.h, x.w, 1};
  AxisCells parts{1, 1, 1, 1};
  bool begun = false;
  for (const auto& [extent, is_along] : {std::pair(x.c, channels), {x.h, rows}, {x.w, columns}}) {
    begun = begun || is_along;
    (is_along ? parts.cells : begun ? parts.inner : parts.outer) *= extent;
  }
  return parts;
}

inline AxisCells along(const Shape& x, const Reduce& op) { return along(x, op.channels, op.rows, op.columns); }
/// The result has one repeat.
inline AxisCells along(const Shape& x, const Softmax& op) {
  return along(x, op.axis == Axis::channel, op.axis == Axis::row, op.axis == Axis::column);
}

}  // namespace lamina
