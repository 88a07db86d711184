#pragma once
// Where the axes of a value in the file are found in a value of the graph. Transposing, flattening, squeezing and most
// reshaping change only this, and move no number.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lamina/onnx.h"
#include "lamina/shape.h"

namespace lamina::onnx {

using Extents = std::vector<std::int64_t>;

/// An axis in the file: factors of its extent, outermost first, each with its stride in the n, c, h, w order of the
/// graph's value. Extents of 1 are left out and neighbours that continue each other are joined, so equal axes compare
/// equal.
using Axis = std::vector<OnnxFactor>;
using View = std::vector<Axis>;

/// The axis of an extent and stride.
Axis axis(std::int64_t extent, std::int64_t stride);
std::int64_t extent(const Axis&);
Extents extents(const View&);

/// Calls visit(place) for each element of the factors in order, the last of them innermost, with its offset in memory.
template <class Visit>
void for_each_place(const Axis& factors, std::int64_t first, Visit visit) {
  std::vector<std::int64_t> at(factors.size(), 0);
  std::int64_t place = first, count = extent(factors);
  while (count-- > 0) {
    visit(place);
    for (std::size_t i = at.size(); i-- > 0;) {
      place += factors[i].stride;
      if (++at[i] < factors[i].extent) break;
      place -= factors[i].stride * factors[i].extent;
      at[i] = 0;
    }
  }
}

/// Which of the graph's axes each axis of the file is: 'n', 'c', 'h' or 'w'. Several on one of them are joined in
/// order.
using AxisLabels = std::string;
/// "nchw", "nch", "nc", "c" and so on: how values of a rank are kept unless an op needs them otherwise.
AxisLabels usual_labels(std::size_t rank);

/// The graph's shape of a value by extents and labels, with extents beyond int as 0, and where its axes then are.
struct GraphLayout {
  Shape shape;
  View view;
};
GraphLayout layout_of(const Extents&, const AxisLabels&);

/// The view of a value under other extents of the same count. Nothing if its numbers would have to move.
std::optional<View> reshaped(const View&, const Extents&);

}  // namespace lamina::onnx
