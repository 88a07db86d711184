#pragma once
// Kinks: points where the output of a graph has no derivative, so that a difference across them says nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "lamina/op.h"
#include "lamina/shape.h"

namespace lamina::planner {

/// The side of every kink on which a run is, and the distance to the nearest kink.
struct Kinks {
  std::vector<std::int32_t> sides;
  double margin = std::numeric_limits<double>::infinity();
  double tie = 1e-11;  ///< how much values that are equal by construction may differ by rounding, relative to the
                       ///< larger of their size and 1

  /// Adds the kinks of an op with inputs of these shapes. `values(i)` gives the dense numbers of input i.
  void add(const Op&, const std::vector<Shape>& x, const Shape& y,
           const std::function<std::vector<double>(std::size_t)>& values);
};

}  // namespace lamina::planner
