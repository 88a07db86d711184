#pragma once
// What is known of a value that is computed when the network runs. Its view says where the file's axes are in a value
// of the graph: transposing, flattening, squeezing and most reshaping change only the view, and move no number.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamina/onnx.h"
#include "lib/onnx/file/messages.h"

namespace lamina::onnx {

/// An axis in the file, as factors, outermost first. Their extents multiply to the axis's extent. A factor's stride
/// counts elements of the graph's value in the order n, c, h, w. Extents of 1 are left out and neighbours that continue
/// each other are joined, so equal axes compare equal.
using Axis = std::vector<OnnxFactor>;
using View = std::vector<Axis>;

/// Whether the view has a factor with the stride 0: an Expand repeats the value along it.
bool is_expanded(const View&);

/// An axis with this extent and stride.
Axis axis(std::int64_t extent, std::int64_t stride);
std::int64_t extent(const Axis&);
Extents extents(const View&);

/// Calls visit(offset in memory) for each element of the factors, in order. The last factor is the innermost.
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

/// The graph's axis for each axis of the file: 'n', 'c', 'h' or 'w'. Axes of the file with the same label are joined in
/// order.
using AxisLabels = std::string;
/// "nchw", "nch", "nc", "c" and so on: the labels of a value unless an op needs others.
AxisLabels usual_labels(std::size_t rank);

/// The shape of a value in the graph, with extents beyond int as 0, and the place of the file's axes in it.
struct GraphLayout {
  Shape shape;
  View view;
};
GraphLayout layout_of(const Extents&, const AxisLabels&);

/// The view after one axis, whose elements are `stride` apart, gets another extent. Nothing if a factor joins this axis
/// with another one.
std::optional<View> with_extent(const View&, std::size_t along, std::int64_t stride, std::int64_t extent);

/// The view of a value under other extents with the same product. Nothing if numbers would have to move.
std::optional<View> reshaped(const View&, const Extents&);

/// The factors of an axis of a value of this shape, each in one axis of the graph. Nothing if a factor spans two axes.
std::optional<Axis> split(const Axis&, const Shape&);

/// The view of a value after a reduction: the graph's axes that hold the axes marked in `over` become 1. For all other
/// axes split() must have a result.
View reduced(const View&, const std::vector<char>& over, bool keeps_axes, const Shape& before, const Shape& after);

/// Pending padding of rows and columns with a number. The op that reads the value pads it. If that op
/// cannot, an op Pad of this name does. Padding of channels, or padding that repeats or reflects the image, becomes
/// an op at once.
struct Padding {
  std::string name{};
  Pad op{};
};

/// A part of an LRN that is written as several nodes: the square of a value or, with size > 0,
/// (scale * mean of the squares of `size` channels + shift) ^ exponent, the mean with zeros around the channels.
struct Squares {
  std::string name;                    ///< name of the op that is appended if no LRN follows
  std::int64_t before = 0, after = 0;  ///< zeros around the channels
  int size = 0;                        ///< channels of the mean; 0: no mean yet
  double scale = 1, shift = 0;
  std::optional<double> exponent{};
};

/// An LSTM or a GRU whose readers decide which steps are computed: all, the last, or both, by two ops with shared
/// parameters.
struct PendingRecurrent {
  std::function<Value(Steps)> append;
  std::int64_t steps;                       ///< number of steps
  std::int64_t last;                        ///< index of the step that is computed last; -1 for two directions
  std::unordered_map<Steps, Value> made{};  ///< ops that were appended, by their steps
};

/// A group norm whose readers decide whether it has a scale and a shift: a Mul and an Add after it have these numbers.
struct PendingNorm {
  GroupNorm op;
  std::string name;
  std::optional<Value> made{};  ///< the op without scale and shift, if a reader needed it
};

/// Bits for what a reader handles itself: kinds of pending computations, and repetition by an Expand. The others are
/// put into the graph first.
namespace keep {
enum : unsigned { padding = 1, squares = 2, recurrent = 4, norm = 8, expanded = 16, all = 31 };
}

/// A value that is computed when the network runs. At most one of padding, squares, recurrent and norm is present: a
/// computation on `value` that is not in the graph yet.
struct DynamicValue {
  Value value;
  View view;
  ElementType type = ElementType::f32;
  std::optional<Padding> padding{};
  std::optional<Squares> squares{};
  std::shared_ptr<PendingRecurrent> recurrent{};
  std::shared_ptr<PendingNorm> norm{};
  Steps steps = Steps::all;  ///< which steps of its recurrent op the value holds

  bool is_pending() const { return padding || squares || recurrent || norm; }
};

/// A value behind a refused node: computed when the network runs, of unknown extents.
struct Unseen {};

}  // namespace lamina::onnx
