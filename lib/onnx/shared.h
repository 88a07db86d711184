#pragma once
// Which parameters of a network are one: numbers of the file that several of its nodes use.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/weights.h"

namespace lamina::onnx {

/// Where the numbers of a parameter come from.
struct WeightSource {
  std::string_view value{};  ///< of the file; empty: no parameter
  bool transposed = false;   ///< whether the parameter is the transpose of the value
  int part = 0;              ///< of the node, where one value has parameters for several
};

/// A parameter, or a running statistic, of a node of the graph.
struct WeightUse {
  std::string name;
  std::string_view parameter;  ///< its name at the node
  Shape shape;
  WeightSource source;
  std::string_view origin;  ///< the value of the file that the source was computed from, without its axes' order
  std::string_view traced;  ///< PyTorch's new exporter: the call that the file's node comes from, with its operands
  std::int64_t whole;       ///< numbers of the origin
};

/// The uses so far. A file does not say which are of one parameter:
///
/// - Equal numbers of one origin are, as a rule. An exporter writes equal parameters once, though, as PyTorch's do with
///   the scales and shifts of new batch norms. So numbers that are all alike need to be the same value of the file.
/// - Where the calls of both nodes are known, they must share an operand, whatever the numbers.
/// - A transpose of equal numbers is, too: an exporter that folds the transposition of a tied weight writes it twice.
class SharedWeights {
 public:
  /// The name of an earlier use of the same parameter, whose numbers are in `weights`; empty: this is the first.
  std::string add(const WeightUse&, const TensorFile& weights);
  /// Uses of all of a parameter that cannot be one here, as its transpose beside it: a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Known {
    WeightUse use;
    std::vector<std::string_view> operands;  ///< of its call: parameters and buffers
    bool alike;                              ///< whether its numbers all are
  };
  static bool are_one(const Known&, const Known&);
  void note_apart(const Known&, const TensorFile& weights);

  std::map<std::pair<std::string_view, std::size_t>, std::vector<Known>> uses_;  ///< by parameter, hash of numbers
  std::map<std::string_view, std::string> of_all_;  ///< by origin: the name of a use of all its numbers
  std::vector<std::string> notes_;
};

}  // namespace lamina::onnx
