#pragma once
// What is known of a value that is computed when the network runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "lamina/graph.h"
#include "lib/onnx/file/messages.h"
#include "view.h"

namespace lamina::onnx {

/// Pending padding of rows and columns with a number. The op that reads the value pads, or an op Pad of this name does.
/// Padding of channels and by cells becomes an op at once.
struct Padding {
  std::string name{};
  Pad op{};
};

/// The square of a value inside an LRN that is written as several nodes:
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

/// A group norm whose readers decide whether it has a scale and a shift: what a Mul and an Add behind it have.
struct PendingNorm {
  GroupNorm op;
  std::string name;
  std::optional<Value> made{};  ///< the op without scale and shift, if a reader needed it
};

/// What stays as it is for the reader of a value, as bits: what is pending, and an Expand that repeats it.
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
  Steps steps = Steps::all;  ///< steps of the recurrent op that the value has

  bool is_pending() const { return padding || squares || recurrent || norm; }
};

/// A value behind a refused node: computed when the network runs, of unknown extents.
struct Unseen {};

}  // namespace lamina::onnx
