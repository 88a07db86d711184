#pragma once
// One node of the file, as the functions of the operators see it; shape inference and folding.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importer.h"
#include "lib/onnx/file/attributes.h"

namespace lamina::onnx {

/// The part of an axis that a Slice takes.
struct Range {
  std::int64_t first, count, step;
};

/// Whether a number of the file is `exact`, up to rounding to f32.
bool is_about(double number, double exact);

/// Thrown where a node asks for a value that is unknown.
struct Unknown {};

/// One node of the file, as the functions of the operators see it.
class NodeContext : public Attributes {
 public:
  using Attributes::has;
  using Attributes::list;
  using Attributes::number;

  NodeContext(Importer& importer, std::size_t index);

  std::int64_t opset() const { return importer_->opset_; }
  bool for_training() const { return importer_->options_.training; }
  const std::filesystem::path& path() const { return importer_->path_; }
  std::string name() const { return name_.value_or(Attributes::name()); }

  std::size_t inputs() const;         ///< number of inputs; absent ones count, except at the end
  bool has(std::size_t input) const;  ///< whether the input is present
  bool is_constant(std::size_t input) const;
  bool all_constant() const;
  const Constant& constant(std::size_t input, std::string_view what = "its input") const;  ///< Refusal if it is dynamic
  /// A computed value; Refusal if it is a constant. First appends all that is pending, except the kinds in `kept`.
  const DynamicValue& dynamic(std::size_t input, unsigned kept = 0) const;
  const DynamicValue& padded(std::size_t input) const {
    return dynamic(input, keep::padding | keep::recurrent | keep::expanded);
  }
  const DynamicValue& viewed(std::size_t input) const { return dynamic(input, keep::all & ~keep::padding); }
  const DynamicValue& spread(std::size_t input) const { return dynamic(input, keep::expanded); }
  const DynamicValue& pending(std::size_t input) const { return dynamic(input, keep::all); }
  /// Index of the node whose output this node makes: the last node that was fused into it, or itself.
  std::size_t last() const { return output_of_; }
  Extents extents(std::size_t input) const;
  double number(std::size_t input, std::string_view what = "a number") const;  ///< FileError for another count
  /// A list that is an attribute in old opsets and an operand in new ones; nothing if it is absent.
  std::optional<Extents> list(const char* name, std::size_t input) const;
  std::vector<Range> slice_ranges(const Extents& of) const;  ///< the part of each axis that a Slice takes
  std::vector<char> reduced_axes(std::size_t rank) const;    ///< for each axis: whether a Reduce reduces it

  bool wanted(std::size_t output) const;             ///< whether a node reads the output, or it is the graph's
  void only_output(std::string_view instead) const;  ///< Refusal with this advice if a further output is read
  void result(DynamicValue its, std::size_t output = 0) { set(output, {std::move(its)}); }
  void result(Constant its, std::size_t output = 0) { set(output, {std::make_shared<const Constant>(std::move(its))}); }
  Value result_of(const Op&, const DynamicValue&);  ///< the result is an op that keeps the extents of its operand
  void fold();                                      ///< the result is computed from inputs that are all constants
  /// The node's results are the results of its branch, a graph without inputs.
  void inline_graph(std::string_view branch) { importer_->inline_graph(index_, branch); }
  /// The extents of a Reshape, with the options' batch in place of the file's batch.
  Extents with_batch(const DynamicValue&, const Extents& wanted) const;
  /// The constant to expand, for an Expand to extents of computed values: one image of the given constant if the latter
  /// has the file's batch and all its images are equal, else the given constant.
  Constant one_image(const Constant&, const Extents& wanted) const;

  /// Appends a node of the graph under a name that is free.
  Value append(const Op&, const std::vector<Value>&, const std::string& name);
  /// As append(), for an op of one input without parameters and state. If an equal op reads the input already, returns
  /// the value of that op.
  Value append_once(const Op&, Value, const std::string& name);
  /// Sets the numbers of a parameter of the node that makes the value. The parameter is shared with an earlier node if
  /// both are one parameter of the model. It is fixed if it has no source or does not train.
  void weights(Value, std::string_view parameter, Extents, std::vector<double>, ElementType, const WeightSource&);
  std::string_view input_name(std::size_t input) const { return has(input) ? node().inputs[input] : ""; }
  /// Whether the constant of a node's arithmetic trains. If neither the file nor OnnxOptions::trains says so, a
  /// constant in a file of PyTorch trains only if x depends on other parameters.
  bool learns(const Constant&, const DynamicValue& x) const;
  /// Notes an initializer that trains although the file does not say so, or that may be a parameter but does not train.
  void note(std::string_view initializer, bool trains);
  bool origins_are_stated() const { return importer_->kinds_.are_stated(); }
  /// Numbers for weights(). They count as computed, because the file need not hold them.
  std::vector<double> numbers(const Constant&) const;
  void consume_budget(std::int64_t computed) const { importer_->consume_budget(computed, where()); }

  /// An addition, subtraction, multiplication or division with a constant operand `at`.
  struct Arithmetic {
    Attributes node;
    const Constant* constant;
    std::size_t at;
  };
  std::optional<Arithmetic> next_arithmetic() const;  ///< the only reader of the result, if it does such arithmetic
  /// The index along this axis that the only reader of the result takes, if this reader is a Gather of one index.
  std::optional<std::int64_t> next_index(std::size_t along, std::size_t rank) const;
  /// The LSTM or GRU that made the value, if the value has all of its steps.
  std::shared_ptr<PendingRecurrent> recurrent_of(const DynamicValue&) const;
  void fuse_next();  ///< fuses the only reader into this node, which then makes the reader's result
  /// Fuses an Add after a product and returns its bias: one number for each element of the axis `channels` of the
  /// result. Empty: there is no such Add.
  Bias fuse_bias(const Extents& result, std::size_t channels);
  /// A node that follows. Its operands are the result, and what is given here, in any order.
  struct Link {
    std::string_view op_type;
    std::optional<double> number{};
    std::string_view with{};            ///< a value
    const NodeContext* side = nullptr;  ///< another node, which nothing else reads; it is fused, too
  };
  /// If the nodes that follow match the links, and each is the only reader of the node before, fuses them, takes the
  /// name of the last and returns true. A Where has the side as its condition, and the result where the side is false.
  bool fuse_chain(std::initializer_list<Link>);
  std::vector<NodeContext> siblings(std::size_t input) const;  ///< other nodes that read an input and are not done

  /// Appends an op Pad for the pending padding of x.
  void append_padding(DynamicValue& x) { importer_->materialise_padding(x); }

 private:
  void set(std::size_t output, Importer::Known);
  /// The only reader of the result of a node, if this reader has one result and is not done.
  std::optional<std::size_t> only_reader(std::size_t node) const;
  /// The only reader of the result, if that reader has two operands; else null.
  const NodeMessage* only_reader() const;

  Importer* importer_;
  std::size_t index_;
  std::size_t output_of_;              ///< see last()
  std::optional<std::string> name_{};  ///< name of a node that was fused into this one
};

/// Operators that a function imports.
struct OperatorRow {
  std::vector<std::string_view> op_types;
  void (*import)(NodeContext&);  ///< imports a node: throws Refusal or FileError
  bool folds = true;             ///< whether a node whose inputs are all constants is folded instead
};
/// Null for an operator without a row.
const OperatorRow* find_operator(std::string_view op_type);

// extents.cpp: shape inference, for constants and for computed values. FileError where operands do not fit.

/// The result of a Shape of a value with these extents.
Constant shape_constant(const Attributes&, const Extents&);

Extents reshape_extents(const Attributes&, const Extents& of, const Extents& wanted);
/// Reshape, Flatten, Squeeze, Unsqueeze: `list` is the attribute or operand of the name that list_name() gives.
Extents regrouped(const Attributes&, const Extents& of, const std::optional<Extents>& list);
const char* list_name(const Attributes&);
std::vector<std::size_t> permutation(const Attributes&, std::size_t rank);

/// The extents of the result of two operands that are broadcast, aligned at the last axis.
Extents broadcast(const Attributes&, const Extents&, const Extents&);
/// The extents of the second operand of an Add, Sub, Mul, Div, Pow or Equal, padded so that they align at the last of
/// the first operand's `rank` axes. Before opset 7 an attribute names the axis of the first operand where they begin.
Extents aligned(const Attributes&, std::int64_t opset, const Extents& its, std::size_t rank);

// fold.cpp: the operators that are folded: nodes whose inputs are all known while the model is read. They compute
// shapes and weights.

/// Computes the result of a node from its constants, without its origin. Throws FileError for operands that do not
/// fit, Refusal for a node that is not folded.
using Function = std::function<Constant(const NodeContext&)>;
/// Null if the operator is not folded.
const Function* find_folding(std::string_view op_type);

/// A result of these extents, with memory for its numbers.
Constant blank(const NodeContext&, ElementType, Extents);

/// A constant under other extents, its numbers in the same order.
Constant with_extents(const NodeContext&, const Constant&, Extents);

// fold_layers.cpp
Constant fold_batch_norm(const NodeContext&);
Constant fold_clip(const NodeContext&);
ElementType cast_type(const NodeContext&);  ///< element type that a Cast or CastLike makes
Constant fold_cast(const NodeContext&);
Constant fold_range(const NodeContext&);
Constant fold_matmul(const NodeContext&);

}  // namespace lamina::onnx
