#pragma once
// A network: ops joined, in an order in which they can run. Independent of devices and backends.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/api.h"
#include "lamina/op.h"

namespace lamina {

/// A parameter or a state of a node, by index. Node -1: none.
struct Slot {
  int node = -1;
  std::size_t index = 0;
  auto operator<=>(const Slot&) const = default;
};

/// One op, applied once. Node i of a graph makes value i; its inputs are earlier values.
struct Node {
  std::string name;  ///< unique; as in PyTorch's state_dict: "layer1.0.conv1"
  Op op;
  std::vector<int> inputs;
  Shape shape;                ///< shape of the value it makes
  std::vector<Shape> params;  ///< weights first, then bias (norms: scale, shift)
  std::vector<Shape> state;   ///< BatchNorm: running mean, running variance; ScaleShift: scale, shift; Dropout: step
  /// For each parameter and each state: the slot of an earlier node with which it shares memory (Graph::share).
  std::vector<Slot> params_of{}, state_of{};
  std::vector<bool> fixed{};  ///< whether training leaves a parameter as it is (Graph::fix)
};

/// Number of elements of the node's own parameters, which are neither fixed nor shared with an earlier node.
LAMINA_API std::int64_t own_parameters(const Node&);

/// A parameter or state of a graph, listed once, however many nodes use it.
struct Stored {
  Slot first;        ///< slot in the first node that uses it
  std::string name;  ///< name in that node: "layer1.0.conv1.weight"
  Shape shape;
  std::vector<std::string> aliases{};  ///< names in the other nodes that use it
  bool fixed = false;                  ///< whether it is a fixed parameter: a state with a parameter's slot
};

class Graph;

/// A value of a graph under construction: a pointer and an int, cheap to copy.
/// Valid as long as the graph (or the graph it was moved into) lives.
class LAMINA_API Value {
 public:
  const Shape& shape() const;
  int id() const { return id_; }

 private:
  friend class Graph;
  friend Value apply(Op, const std::vector<Value>&, std::string);
  struct Body;
  Value(Body* body, int id) : body_(body), id_(id) {}
  Body* body_;
  int id_;
};

/// A network under construction or complete. Every net can be built, described and tested on any machine. A graph is
/// movable and copied by clone() alone. Values point into it, and follow it when it is moved. On a moved-from graph
/// every function except assignment throws UsageError.
class LAMINA_API Graph {
 public:
  explicit Graph(std::string name);
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  Graph clone() const;  ///< values of this graph do not point into the copy

  const std::string& name() const;

  /// Adds an input. An empty name becomes "input". Throws ShapeError for an extent below 1.
  Value input(Shape, std::string name = {});

  const std::vector<Node>& nodes() const;
  const Node& node(std::string_view name) const;  ///< throws UsageError with near names
  Value value(std::string_view node);             ///< value to build on; throws UsageError with near names
  int find(std::string_view name) const;          ///< index of the node, or -1

  /// Makes nodes share a parameter: share("decoder.weight", "encoder.weight"). Both nodes read it, and their gradients
  /// add up. The parameter keeps its name in the earlier node; its other name is an alias. Running statistics of batch
  /// norms can be shared, too: each node updates them, in order. Throws UsageError (unknown names, with near names; a
  /// state that is no statistic; a parameter with a state; two tensors of one node), ShapeError (different extents);
  /// the graph is then unchanged.
  void share(std::string_view tensor, std::string_view with);
  /// Shares all parameters and statistics of two nodes, as in a module that is applied twice. Throws as above, and
  /// UsageError for nodes whose parameters differ in kind, or that have none.
  void share_all(std::string_view node, std::string_view with);
  /// Turns a parameter into state: plans have no gradient of it, and no update changes it. It is like a buffer in
  /// PyTorch, or a parameter without requires_grad. Throws UsageError for an unknown name, with near names.
  void fix(std::string_view parameter);
  std::vector<Stored> parameters() const;  ///< in order of the nodes, without fixed parameters
  std::vector<Stored> states() const;      ///< in order of the nodes, then the fixed parameters

  Graph first(std::size_t count) const;  ///< a copy of its first `count` nodes

  /// Elements of all parameters, each once (state is not counted). Throws ShapeError beyond 2^63 - 1.
  std::int64_t parameter_count() const;
  /// Multiply-adds of one forward pass over the whole batch, as lamina::multiply_adds counts. Throws as above.
  std::int64_t multiply_adds() const;

 private:
  Value::Body& body() const;
  std::unique_ptr<Value::Body> body_;
};

/// Appends a node and infers its shapes. The inputs must belong to one graph; the result belongs to it too.
/// An empty name becomes the op's name. A repeated name gets "#2", "#3", ... in order of appending if the op has
/// no parameters, and is a UsageError otherwise. Throws ShapeError (node, op, every shape), UsageError (values of
/// different graphs, no inputs); the graph is then unchanged.
LAMINA_API Value apply(Op, const std::vector<Value>& inputs, std::string name = {});

inline Value conv(Value x, std::string name, Conv op) { return apply(op, {x}, std::move(name)); }
inline Value conv_transpose(Value x, std::string name, ConvTranspose op) { return apply(op, {x}, std::move(name)); }
inline Value max_pool(Value x, std::string name, MaxPool op) { return apply(op, {x}, std::move(name)); }
inline Value average_pool(Value x, std::string name, AveragePool op) { return apply(op, {x}, std::move(name)); }
inline Value global_average_pool(Value x, std::string name = {}) {
  return apply(GlobalAveragePool{}, {x}, std::move(name));
}
inline Value batch_norm(Value x, std::string name, BatchNorm op = {}) { return apply(op, {x}, std::move(name)); }
inline Value group_norm(Value x, std::string name, GroupNorm op) { return apply(op, {x}, std::move(name)); }
inline Value layer_norm(Value x, std::string name, LayerNorm op = {}) { return apply(op, {x}, std::move(name)); }
inline Value lrn(Value x, std::string name, Lrn op = {}) { return apply(op, {x}, std::move(name)); }
inline Value relu(Value x, std::string name = {}) { return apply(Relu{}, {x}, std::move(name)); }
inline Value fully_connected(Value x, std::string name, FullyConnected op) { return apply(op, {x}, std::move(name)); }
inline Value dropout(Value x, std::string name, Dropout op = {}) { return apply(op, {x}, std::move(name)); }
inline Value softmax(Value x, std::string name = {}, Softmax op = {}) { return apply(op, {x}, std::move(name)); }
/// Any Function. Some functions also have separate helpers, below.
inline Value pointwise(Value x, std::string name, Pointwise op) { return apply(op, {x}, std::move(name)); }
inline Value sigmoid(Value x, std::string name = {}) { return pointwise(x, std::move(name), {Function::sigmoid}); }
inline Value tanh(Value x, std::string name = {}) { return pointwise(x, std::move(name), {Function::tanh}); }
inline Value clip(Value x, std::string name, double low, double high) {
  return pointwise(x, std::move(name), {Function::clip, low, high});
}
inline Value hard_sigmoid(Value x, std::string name = {}, double alpha = 1.0 / 6, double beta = 0.5) {
  return pointwise(x, std::move(name), {Function::hard_sigmoid, alpha, beta});
}
inline Value hard_swish(Value x, std::string name = {}) {
  return pointwise(x, std::move(name), {Function::hard_swish});
}
inline Value silu(Value x, std::string name = {}) { return pointwise(x, std::move(name), {Function::silu}); }
inline Value leaky_relu(Value x, std::string name = {}, double slope = 0.01) {
  return pointwise(x, std::move(name), {Function::leaky_relu, slope});
}
inline Value elu(Value x, std::string name = {}, double alpha = 1) {
  return pointwise(x, std::move(name), {Function::elu, alpha, 1});
}
inline Value selu(Value x, std::string name = {}) {
  return pointwise(x, std::move(name), {Function::elu, selu_alpha, selu_scale});
}
inline Value gelu(Value x, std::string name = {}) { return pointwise(x, std::move(name), {Function::gelu}); }
inline Value mish(Value x, std::string name = {}) { return pointwise(x, std::move(name), {Function::mish}); }
inline Value softmax_cross_entropy(Value logits, Value labels, std::string name = {}, SoftmaxCrossEntropy op = {}) {
  return apply(op, {logits, labels}, std::move(name));
}
inline Value sigmoid_cross_entropy(Value logits, Value labels, std::string name = {}, SigmoidCrossEntropy op = {}) {
  return apply(op, {logits, labels}, std::move(name));
}
inline Value embedding(Value ids, std::string name, Embedding op) { return apply(op, {ids}, std::move(name)); }
/// The op with Cell::lstm.
inline Value lstm(Value x, std::string name, Recurrent op) {
  op.cell = Cell::lstm;
  return apply(op, {x}, std::move(name));
}
/// The op with Cell::gru.
inline Value gru(Value x, std::string name, Recurrent op) {
  op.cell = Cell::gru;
  return apply(op, {x}, std::move(name));
}
/// An Add of equal shapes, else a Binary.
inline Value add(Value a, Value b, std::string name = {}) {
  return apply(a.shape() == b.shape() ? Op(Add{}) : Op(Binary{BinaryFunction::add}), {a, b}, std::move(name));
}
/// A Binary. The next four functions make a Binary, too.
inline Value subtract(Value a, Value b, std::string name = {}) {
  return apply(Binary{BinaryFunction::subtract}, {a, b}, std::move(name));
}
inline Value multiply(Value a, Value b, std::string name = {}) {
  return apply(Binary{BinaryFunction::multiply}, {a, b}, std::move(name));
}
inline Value divide(Value a, Value b, std::string name = {}) {
  return apply(Binary{BinaryFunction::divide}, {a, b}, std::move(name));
}
inline Value maximum(Value a, Value b, std::string name = {}) {
  return apply(Binary{BinaryFunction::maximum}, {a, b}, std::move(name));
}
inline Value minimum(Value a, Value b, std::string name = {}) {
  return apply(Binary{BinaryFunction::minimum}, {a, b}, std::move(name));
}
inline Value scale_shift(Value x, std::string name, ScaleShift op = {}) { return apply(op, {x}, std::move(name)); }
inline Value prelu(Value x, std::string name, PRelu op = {}) { return apply(op, {x}, std::move(name)); }
inline Value pad(Value x, std::string name, Pad op) { return apply(op, {x}, std::move(name)); }
inline Value resize(Value x, std::string name, Resize op) { return apply(op, {x}, std::move(name)); }
inline Value reorder(Value x, std::string name, Reorder op) { return apply(std::move(op), {x}, std::move(name)); }
inline Value channel_shuffle(Value x, std::string name, int groups) {
  return reorder(x, std::move(name), channel_shuffle(x.shape(), groups));
}
inline Value pixel_shuffle(Value x, std::string name, int factor) {
  return reorder(x, std::move(name), pixel_shuffle(x.shape(), factor));
}
inline Value pixel_unshuffle(Value x, std::string name, int factor) {
  return reorder(x, std::move(name), pixel_unshuffle(x.shape(), factor));
}
inline Value reduce(Value x, std::string name, Reduce op) { return apply(op, {x}, std::move(name)); }
inline Value concat(const std::vector<Value>& x, std::string name = {}, Concat op = {}) {
  return apply(op, x, std::move(name));
}
inline Value slice(Value x, std::string name, Slice op) { return apply(op, {x}, std::move(name)); }

/// The shapes of the inputs of a node.
LAMINA_API std::vector<Shape> input_shapes(const Graph&, const Node&);

/// For each node whose value is read as labels or ids, directly or through Slice and Concat: the count of whole numbers
/// 0, 1, ..., count - 1 that the value may hold; with several readers, the least count. 0 for every other node.
LAMINA_API std::vector<std::int64_t> whole_numbers(const Graph&);

}  // namespace lamina
