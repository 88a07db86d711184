#pragma once
// A model on its way to a graph: what is known of each value of the file, and the nodes that are done.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
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

#include "attributes.h"
#include "constant.h"
#include "lamina/onnx.h"
#include "messages.h"
#include "origins.h"
#include "refusals.h"
#include "shared.h"
#include "view.h"

namespace lamina::onnx {

/// Zeros (or another number) around rows and columns. The op that reads them pads, or else an op Pad of that name.
struct Padding {
  std::string name;
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  double number = 0;
  PadBy by = PadBy::value;  ///< other than by value it is an op at once
};

/// The square of a value on the way through an LRN that is written as its parts:
/// (scale * mean of the squares of `size` channels + shift) ^ exponent, the mean with zeros around the channels.
struct Squares {
  std::string name;                    ///< the name of the op Multiply that it is where no LRN follows
  std::int64_t before = 0, after = 0;  ///< zeros around the channels
  int size = 0;                        ///< 0: no mean yet
  double scale = 1, shift = 0;
  std::optional<double> exponent{};
};

/// An LSTM, whose readers decide which steps are computed: all, the last, or both by two ops with the same parameters.
struct PendingLstm {
  std::function<Value(Steps)> append;
  std::int64_t steps;                       ///< number of steps
  std::int64_t last;                        ///< index of the step that is computed last; -1 for two directions
  std::unordered_map<Steps, Value> made{};  ///< ops so far
};

/// A value that is computed when the network runs. At most one of the last three is there: what no node of the graph
/// has computed from `value` yet.
struct DynamicValue {
  Value value;
  View view;
  ElementType type = ElementType::f32;
  std::optional<Padding> padding{};
  std::optional<Squares> squares{};
  std::shared_ptr<PendingLstm> lstm{};
  Steps steps = Steps::all;  ///< steps of the LSTM that the value has

  bool is_pending() const { return padding || squares || lstm; }
};

/// What is computed when the network runs, of extents that nobody knows: it is behind a node that is not read.
struct Unseen {};

/// Which part of an axis a Slice takes.
struct Range {
  std::int64_t first, count, step;
};

/// What a node asks of a value of which nothing is known.
struct Unknown {};

class Importer;

/// One node of the file, as the functions of the operators see it.
class NodeContext {
 public:
  NodeContext(Importer& importer, std::size_t index);

  const Attributes& attributes() const { return attributes_; }
  std::int64_t opset() const;
  bool for_training() const;  ///< OnnxOptions::training
  const std::filesystem::path& path() const;
  std::string name() const { return name_.value_or(attributes_.name()); }

  std::size_t inputs() const;         ///< with absent ones in between, without those at the end
  bool has(std::size_t input) const;  ///< whether it is present
  bool is_constant(std::size_t input) const;
  bool all_constant() const;
  const Constant& constant(std::size_t input, std::string_view what = "its input") const;  ///< Refusal if it is dynamic
  const DynamicValue& dynamic(std::size_t input) const;  ///< Refusal if it is a constant
  const DynamicValue& padded(std::size_t input) const;   ///< as dynamic(), perhaps with a pending padding or LSTM
  const DynamicValue& viewed(std::size_t input) const;   ///< as dynamic(), perhaps with pending squares or LSTM
  const DynamicValue& pending(std::size_t input) const;  ///< as dynamic(), perhaps with anything pending
  std::size_t last() const { return output_of_; }        ///< the node whose output is this one's
  Extents extents(std::size_t input) const;
  double number(std::size_t input, std::string_view what = "a number") const;  ///< FileError for another count
  /// An attribute up to some opset, an operand from then on; nothing if it is absent.
  std::optional<Extents> list(const char* name, std::size_t input) const;
  std::vector<Range> slice_ranges(const Extents& of) const;  ///< the part of each axis that a Slice takes
  std::vector<char> reduced_axes(std::size_t rank) const;    ///< by axis: whether a Reduce is over it

  bool wanted(std::size_t output) const;             ///< whether anything reads it
  void only_output(std::string_view instead) const;  ///< Refusal if another than the first is wanted: what to do
  void result(DynamicValue, std::size_t output = 0);
  void result(Constant, std::size_t output = 0);
  void result_of(const Op&, const DynamicValue&);  ///< of an op that keeps the extents of its operand
  void fold();                                     ///< the result from inputs that are all constants
  void inline_graph(std::string_view attribute);   ///< the results from the nodes of a graph without inputs
  /// The extents that a Reshape asks for: numbers of the file stand for its batch, where the options give another.
  Extents with_batch(const DynamicValue&, const Extents& wanted) const;
  /// What an Expand to extents of running values expands: of a constant with the file's batch, whose images are equal,
  /// one image.
  Constant one_image(const Constant&, const Extents& wanted) const;

  /// Appends a node of the graph under a name that is free.
  Value append(const Op&, const std::vector<Value>&, const std::string& name);
  /// The same for an op of one input without parameters and state; the node of an equal op, if that input has one.
  Value append_once(const Op&, Value, const std::string& name);
  /// Numbers of a parameter of the node that makes the value. An earlier node's, if they are one parameter. Fixed, if
  /// there is no source, or if it does not train.
  void weights(Value, std::string_view parameter, Extents, std::vector<double>, ElementType, const WeightSource&);
  std::string_view input_name(std::size_t input) const { return attributes_.node().inputs[input]; }
  /// Whether the constant of a node's arithmetic trains: where the file does not say what parameters are, one of
  /// PyTorch's that is behind other parameters.
  bool learns(const Constant&, const DynamicValue& x) const;
  /// For a note: an initializer that is taken for a parameter without the file saying so, or that may be one and is not
  /// trained.
  void note(std::string_view initializer, bool trains);
  bool origins_are_stated() const;
  /// Numbers for `weights`: counted, as the file need not hold them.
  std::vector<double> numbers(const Constant&) const;
  void consume_budget(std::int64_t computed) const;

  /// The only reader of the result, if it adds, subtracts, multiplies or divides by a constant, which is its operand
  /// `at`.
  struct Arithmetic {
    Attributes node;
    const Constant* constant;
    std::size_t at;
  };
  std::optional<Arithmetic> next_arithmetic() const;
  /// The one index that the only reader of the result takes of this axis, if it is a Gather.
  std::optional<std::int64_t> next_index(std::size_t along, std::size_t rank) const;
  /// The LSTM all of whose steps the value has; null if it is something else.
  std::shared_ptr<PendingLstm> lstm_of(const DynamicValue&) const;
  void fuse_next();  ///< the only reader is done then, with this node's result
  /// The bias of a product: what an Add right after it adds, one number for each element of the axis `channels` of the
  /// result. The Add is done then, and `source` is what it adds. Empty: there is no such Add.
  std::vector<double> fuse_bias(const Extents& result, std::size_t channels, WeightSource& source);
  /// Whether only a Mul reads the result, and multiplies it by this node's input: it is done then, with this one's
  /// result, and its name is that of the result.
  bool fuse_product();

  Importer& importer() const { return *importer_; }

 private:
  DynamicValue& held(std::size_t input) const;
  /// The only reader of the result, with two operands and one result; null if there is none that is to be done.
  const NodeMessage* only_reader() const;

  Importer* importer_;
  std::size_t index_;
  std::size_t output_of_;  ///< node whose output is this one's: another where later nodes were fused
  Attributes attributes_;
  std::optional<std::string> name_{};  ///< the name of a node that is done with this one
};

/// Operators that one function imports.
struct OperatorRow {
  std::vector<std::string_view> op_types;
  void (*import)(NodeContext&);  ///< does a node: throws Refusal or FileError
  bool folds = true;             ///< whether a node of constants alone is folded instead
};
/// Null if there is none.
const OperatorRow* find_operator(std::string_view op_type);

class Importer {
 public:
  Importer(const ModelMessage&, const OnnxOptions&, const std::filesystem::path&);
  OnnxModel run();
  /// What onnx_open_extents gives.
  std::vector<OnnxOpenExtent> open_extents_of_all();
  /// What run() gives, or the output if it is a constant.
  std::variant<OnnxModel, Constant> run_or_fold();
  void materialise_padding(DynamicValue&);  ///< makes an op of it

 private:
  friend class NodeContext;
  struct Known {  ///< monostate: of a constant nothing but that it is one
    std::variant<std::monostate, const TensorMessage*, std::shared_ptr<const Constant>, DynamicValue, Unseen> is;
  };

  void choose_output();
  void read_file(const std::set<std::string_view>& wanted);
  void add_initializers(const GraphMessage&);
  void add_nodes(const GraphMessage&, std::set<std::string_view> wanted);
  void fold_constants();
  void add_inputs();
  void import_nodes(std::size_t first);
  void import_node(std::size_t index);
  void inline_graph(std::size_t index, GraphMessage);
  void stand_in(const NodeMessage&);
  Extents stated_extents(std::string_view value, ElementType&);
  bool is_unsure(const NodeMessage&) const;  ///< whether it reads what stands in for something, or follows from it
  std::set<std::string_view> reads(const NodeMessage&, int depth = 0) const;
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
  void materialise_squares(DynamicValue&);              ///< makes an op of them
  void materialise(DynamicValue&);                      ///< makes ops of what is pending
  const Constant* constant_of(std::string_view value);  ///< null if it is none
  bool has_parameters(int node);                        ///< of the graph: it, or what it follows from
  std::string free_name(const std::string&);
  void consume_budget(std::int64_t computed, const std::string& what);
  std::string in_file(std::string_view value) const;
  const std::vector<std::size_t>& readers(std::string_view value) const;

  const ModelMessage& model_;
  const GraphMessage& file_;
  std::vector<const NodeMessage*> nodes_;  ///< those of the file, then those of inlined graphs
  const OnnxOptions& options_;
  std::filesystem::path path_;
  std::string name_;  ///< the file's name
  std::int64_t opset_ = 0;
  std::string_view output_;
  std::unordered_map<std::string_view, Known> values_;
  std::unordered_map<std::string_view, const ValueMessage*> inputs_;  ///< those that are no constants
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::set<std::string_view> made_;     ///< every value that has a producer, or is an input
  std::set<std::string_view> inlined_;  ///< outputs of inlined graphs
  std::deque<GraphMessage> graphs_;     ///< these graphs
  std::vector<char> live_, done_;
  std::unordered_set<std::string_view> unsure_;  ///< values that stand in for others, and those that follow from them
  Refusals refusals_;
  std::vector<const ValueMessage*> stated_;                      ///< what the file says of values, by their names
  std::unordered_map<int, std::shared_ptr<PendingLstm>> lstms_;  ///< by ops of all steps
  std::unordered_map<int, std::vector<Value>> once_;             ///< by input: what append_once() made of it
  std::unordered_map<std::string, int> repeats_;                 ///< a number for each name: every lower one is taken
  SharedWeights shared_;
  std::int64_t computed_ = 0;                                           ///< less those that the file has
  std::unordered_map<std::string_view, std::uint64_t> external_bytes_;  ///< that were read, by location
  std::int64_t fixed_batch_ = 0;  ///< in the file, where the options replace it; 0 if it is open
  bool guesses_labels_ = false;   ///< whether labels_of() had no operator to go by, behind a Transpose
  Origins kinds_;
  std::vector<char> has_parameters_{};                         ///< by node of the graph, as far as was asked
  std::set<std::string_view> learned_{}, left_as_they_are_{};  ///< initializers, for notes
  OnnxModel result_;
};

}  // namespace lamina::onnx
