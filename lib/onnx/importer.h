#pragma once
// A model on its way to a graph: what is known of each value of the file, and the nodes that are done.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "lamina/onnx.h"
#include "lib/onnx/file/messages.h"
#include "lib/onnx/file/nodes.h"
#include "lib/onnx/file/origins.h"
#include "lib/onnx/values/shared.h"
#include "lib/onnx/values/view.h"

namespace lamina::onnx {

/// Nodes of a model that are refused. Nodes of one operator with the same reason are reported together.
class Refusals {
 public:
  explicit Refusals(bool each) : each_(each) {}  ///< whether each node has a line of its own

  /// An empty `op`: the model itself is refused. An empty `why`: the node could not be judged.
  void add(std::string_view op, const std::string& node, const std::string& why);
  bool empty() const { return kinds_.empty(); }
  /// The text of the error after the file's name: at most ten lines, unless each node has its own.
  std::string text(std::int64_t opset) const;

 private:
  struct Kind {
    std::string op, first, why;
    std::size_t count = 0;
  };

  bool each_;
  std::vector<Kind> kinds_{};
  std::map<std::string, std::size_t> places_{};  ///< indices of kinds_, by operator and reason
};

class Importer {
 public:
  Importer(const ModelMessage&, const OnnxOptions&, const std::filesystem::path&);
  OnnxModel run();
  /// The result of onnx_open_extents.
  std::vector<OnnxOpenExtent> open_extents_of_all();
  /// The result of run(), or the output if it is a constant.
  std::variant<OnnxModel, Constant> run_or_fold();

 private:
  friend class NodeContext;
  struct Known {  ///< monostate: a constant whose numbers are unknown
    std::variant<std::monostate, const TensorMessage*, std::shared_ptr<const Constant>, DynamicValue, Unseen> is;
    bool is_computed() const { return is.index() > 2; }
  };

  void choose_output();
  void read_file(const std::set<std::string_view>& wanted);
  void add_initializers(const GraphMessage&);
  void fold_constants();
  void add_inputs();
  void import_nodes(std::size_t first);
  void import_node(std::size_t index);
  void inline_graph(std::size_t index, std::string_view branch);
  void stand_in(const NodeMessage&);
  Extents stated_extents(std::string_view value, ElementType&);
  bool is_unsure(const NodeMessage&) const;  ///< whether the node depends on the stand-in of a refused node
  [[noreturn]] void refuse() const;

  bool is_read(const ValueMessage& input) const;
  void check_extents();
  std::optional<std::size_t> batch_axis(const ValueMessage& input);
  template <class Visit>
  void for_each_open(Visit);
  std::vector<OnnxOpenExtent> open_extents();
  Extents extents_of(const ValueMessage&);
  AxisLabels labels_of(std::string_view value, std::size_t rank, int depth);
  AxisLabels labels_for_operand(const NodeMessage&, std::size_t operand, std::size_t rank, int depth);
  Known* known(std::string_view value);
  void materialise_padding(DynamicValue&);
  void materialise(DynamicValue&, unsigned kept);       ///< appends all that is pending, except the kinds in `kept`
  const Constant* constant_of(std::string_view value);  ///< null unless the value is a constant
  bool has_parameters(int node);                        ///< whether a node of the graph or an ancestor has parameters
  std::string free_name(const std::string&);
  void consume_budget(std::int64_t computed, const std::string& what);
  std::string in_file(std::string_view value) const;

  const ModelMessage& model_;
  const GraphMessage& file_;
  Nodes nodes_;
  const OnnxOptions& options_;
  std::filesystem::path path_;
  std::string name_;  ///< the file's name
  std::int64_t opset_ = 0;
  std::string_view output_;
  std::unordered_map<std::string_view, Known> values_;
  std::unordered_map<std::string_view, const ValueMessage*> inputs_;  ///< inputs that are not constants
  std::set<std::string_view> inlined_;                                ///< outputs of inlined graphs
  std::deque<GraphMessage> graphs_;                                   ///< inlined graphs
  std::unordered_set<std::string_view> unsure_;                       ///< stand-ins, and values computed from them
  Refusals refusals_;
  std::vector<const ValueMessage*> stated_;                                ///< values of known extents, sorted by name
  std::unordered_map<int, std::shared_ptr<PendingRecurrent>> recurrents_;  ///< LSTMs and GRUs, by the node of all steps
  std::unordered_map<int, std::vector<Value>> once_;                       ///< results of append_once(), by input
  std::unordered_map<std::string, int> repeats_;                           ///< last number appended to a name, by name
  SharedWeights shared_;
  std::int64_t computed_ = 0;  ///< numbers computed so far, minus those stored in the file
  std::unordered_map<std::string_view, std::uint64_t> external_bytes_;  ///< bytes read so far, by location
  std::int64_t fixed_batch_ = 0;  ///< the file's batch if the options replace it, else 0
  bool guesses_labels_ = false;   ///< whether labels_of() assumed the usual labels after a Transpose
  Origins kinds_;
  std::vector<char> has_parameters_{};                         ///< results of has_parameters(), by node of the graph
  std::set<std::string_view> learned_{}, left_as_they_are_{};  ///< initializers for the notes
  OnnxModel result_;
};

}  // namespace lamina::onnx
