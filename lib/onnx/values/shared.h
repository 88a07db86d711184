#pragma once
// Shared parameters of a network: numbers of the file that several nodes use.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/weights.h"

namespace lamina::onnx {

/// The origin of a parameter's numbers.
struct WeightSource {
  std::string_view value{};  ///< name in the file; empty: not a parameter
  bool transposed = false;   ///< whether the parameter is the transpose of the value
  int part = 0;              ///< index of the node, if one value has the parameters of several nodes
};

/// The bias of a product; empty: none.
struct Bias {
  std::vector<double> values{};
  WeightSource source{};
};

/// A parameter, or a running statistic, of a node of the graph.
struct WeightUse {
  std::string name;
  std::string_view parameter;  ///< name of the parameter at the node
  Shape shape;
  WeightSource source;
  std::string_view origin;  ///< the value of the file that the source was computed from, in any order of axes
  std::string_view traced;  ///< PyTorch's new exporter: the traced call of the file's node
  std::int64_t whole;       ///< number of elements of the origin
};

/// The uses so far. A file does not state which uses share a parameter, so these rules decide:
///
/// - Uses with the same numbers and origin share a parameter. But exporters may write several parameters as one if
///   their contents are equal, such as scales of new batch norms, which are all 1. So uses whose numbers are all equal
///   must also read the same value of the file.
/// - If the traced calls of both nodes are known, the calls must share an operand instead.
/// - A use and a transposed use of the same numbers share a parameter: exporters that fold the transpose of a tied
///   weight write both.
class SharedWeights {
 public:
  /// The name of an earlier use of the same parameter, whose numbers are in `weights`; empty: this is the first.
  std::string add(const WeightUse&, const TensorFile& weights);
  /// A sentence for each parameter whose uses cannot share it here, for example as a matrix and as its transpose.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Known {
    WeightUse use;
    std::vector<std::string_view> operands;  ///< parameters and buffers of its traced call
    bool alike;                              ///< whether all its numbers are equal
  };
  static bool are_one(const Known&, const Known&);
  void note_apart(const Known&, const TensorFile& weights);

  std::map<std::pair<std::string_view, std::size_t>, std::vector<Known>> uses_;  ///< by parameter, hash of numbers
  std::map<std::string_view, std::string> of_all_;  ///< name of a use of the whole origin, by origin
  std::vector<std::string> notes_;
};

}  // namespace lamina::onnx
