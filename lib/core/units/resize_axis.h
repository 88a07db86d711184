#pragma once
// Where a Resize reads x, along one axis.

#include <algorithm>
#include <cmath>

#include "lamina/op.h"

namespace lamina {

inline bool is_linear(ResizeBy by) { return by == ResizeBy::linear || by == ResizeBy::linear_aligned; }

/// Element i of y lies at position(i) of x. It reads the cell at the floor and, if linear, the cell at the ceiling.
struct ResizeAxis {
  double step, offset;
  int extent;  ///< extent of x
  bool linear;

  double position(int i) const { return std::min(std::max(std::fma(i, step, offset), 0.0), extent - 1.0); }
};

/// The axis for extents `from` of x and `to` of y, and a step of the op.
inline ResizeAxis resize_axis(ResizeBy by, int from, int to, double step) {
  if (by == ResizeBy::linear_aligned) return {to > 1 ? (from - 1.0) / (to - 1) : 0, 0, from, true};
  if (step == 0) step = static_cast<double>(from) / to;
  const double offset = by == ResizeBy::nearest ? 0 : step / 2;
  return is_linear(by) ? ResizeAxis{step, offset - 0.5, from, true} : ResizeAxis{step, offset + 0x1p-20, from, false};
}

struct ResizeAxes {
  ResizeAxis rows, columns;
};
inline ResizeAxes resize_axes(const Resize& op, const Shape& x) {
  return {resize_axis(op.by, x.h, op.to.h, op.step_h), resize_axis(op.by, x.w, op.to.w, op.step_w)};
}

}  // namespace lamina
