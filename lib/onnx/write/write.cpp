// Writing a graph as a model. A fully connected op is Gemm, which takes and makes matrices: Flatten comes before it,
// and Unsqueeze after it where an op wants rows and columns again. Both are no nodes when the model is read.

#include <algorithm>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "lib/core/files/new_file.h"
#include "lib/core/numbers/elements.h"
#include "lib/onnx/messages.h"
#include "node_out.h"

namespace lamina {
namespace {

using onnx::NodeOut;
using Writer = protozero::pbf_writer;

constexpr std::int64_t opset = 19, ir_version = 9;
constexpr std::size_t longest = std::numeric_limits<std::int32_t>::max();

class Exporter {
 public:
  Exporter(std::string file, const Graph& graph, const TensorFile& weights)
      : file_(std::move(file)), graph_(graph), weights_(weights), matrix_(graph.nodes().size(), false), out_(message_) {
    for (const Node& node : graph.nodes()) taken_.insert(node.name);
    for (const auto& all : {graph.parameters(), graph.states()})
      for (const Stored& its : all)
        for (const std::string& alias : its.aliases) first_[alias] = its.name;
  }

  std::string message() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      id_ = i;
      node_ = &graph_.nodes()[i];
      std::visit(*this, node_->op);
    }
    if (!refused_.empty()) throw Unsupported(file_ + ": cannot be written as ONNX: " + refused_);
    out_.add_string(2, graph_.name());
    const std::size_t last = graph_.nodes().size() - 1;
    out_.add_message(12, value_info(graph_.nodes()[last].name, graph_.nodes()[last].shape, matrix_[last]));
    return std::move(message_);
  }

  void operator()(const Input&) { out_.add_message(11, value_info(node_->name, node_->shape, false)); }

  void operator()(const Conv& op) {
    emit(with_weights("Conv", op.bias, {op.channels, node_->params[0].c, op.kernel.h, op.kernel.w})
             .size("kernel_shape", op.kernel)
             .size("strides", op.stride)
             .pads(op.pad)
             .size("dilations", op.dilation)
             .integer("group", op.groups));
  }

  void operator()(const FullyConnected& op) {
    const std::size_t x = input(0);
    std::string from = graph_.nodes()[x].name;
    if (!matrix_[x]) {
      from = beside(".flat");
      emit(NodeOut("Flatten", from, {graph_.nodes()[x].name}, from));
    }
    std::vector<std::string> operands = {from, parameter("weight", {op.outputs, node_->params[0].image()})};
    if (op.bias) operands.push_back(parameter("bias", {op.outputs}));
    emit(NodeOut("Gemm", node_->name, operands, node_->name).integer("transB", 1));
    matrix_[id_] = true;
  }

  void operator()(const MaxPool& op) { emit(pool("MaxPool", op)); }
  void operator()(const AveragePool& op) {
    emit(pool("AveragePool", op).integer("count_include_pad", op.count_padding ? 1 : 0));
  }
  void operator()(const GlobalAveragePool&) {
    emit(NodeOut("GlobalAveragePool", node_->name, {image(0)}, node_->name));
  }

  void operator()(const BatchNorm& op) {
    const std::int64_t channels = node_->shape.c;
    std::vector<std::string> operands = {same(0)};
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      operands.push_back(parameter(part, {channels}));
    }
    emit(NodeOut("BatchNormalization", node_->name, operands, node_->name)
             .number("epsilon", op.epsilon)
             .number("momentum", 1 - op.momentum));
  }

  void operator()(const Lrn& op) {
    if (op.size % 2 == 0) return refuse();
    emit(NodeOut("LRN", node_->name, {image(0)}, node_->name)
             .integer("size", op.size)
             .number("alpha", op.alpha)
             .number("beta", op.beta)
             .number("bias", op.k));
  }

  void operator()(const Dropout& op) {
    const std::string ratio = add_number(".ratio", op.rate);
    emit(NodeOut("Dropout", node_->name, {same(0), ratio}, node_->name));
  }

  void operator()(const Relu&) { emit(NodeOut("Relu", node_->name, {same(0)}, node_->name)); }
  void operator()(const Sigmoid&) { emit(NodeOut("Sigmoid", node_->name, {same(0)}, node_->name)); }
  void operator()(const Tanh&) { emit(NodeOut("Tanh", node_->name, {same(0)}, node_->name)); }
  void operator()(const Clip& op) {
    const std::string low = add_number(".low", op.low), high = add_number(".high", op.high);
    emit(NodeOut("Clip", node_->name, {same(0), low, high}, node_->name));
  }
  void operator()(const HardSigmoid& op) {
    emit(NodeOut("HardSigmoid", node_->name, {same(0)}, node_->name).number("alpha", op.alpha).number("beta", op.beta));
  }
  void operator()(const HardSwish&) { emit(NodeOut("HardSwish", node_->name, {same(0)}, node_->name)); }
  void operator()(const Silu&) {
    const std::string x = same(0), factor = beside(".sigmoid");
    emit(NodeOut("Sigmoid", factor, {x}, factor));
    emit(NodeOut("Mul", node_->name, {x, factor}, node_->name));
  }
  void operator()(const Softmax&) { emit(NodeOut("Softmax", node_->name, {same(0)}, node_->name).integer("axis", 1)); }

  void operator()(const Add&) {
    const std::vector<std::string> operands = all();
    emit(NodeOut(operands.size() == 2 ? "Add" : "Sum", node_->name, operands, node_->name));
  }
  void operator()(const Multiply&) { emit(NodeOut("Mul", node_->name, all(), node_->name)); }
  void operator()(const ScaleShift& op) {
    const std::string x = same(0), scaled = beside(".scaled");
    std::vector<std::int64_t> extents;
    if (op.by_channel) extents = {node_->shape.c};
    if (op.by_channel && !matrix_[id_]) extents.insert(extents.end(), {1, 1});
    emit(NodeOut("Mul", node_->name, {x, parameter("scale", extents)}, scaled));
    emit(NodeOut("Add", scaled, {scaled, parameter("shift", extents)}, node_->name));
  }
  void operator()(const Pad& op) {
    const std::string pads = add_integers(".pads", {0, 0, op.before.h, op.before.w, 0, 0, op.after.h, op.after.w});
    const std::string value = add_number(".value", op.value);
    NodeOut node("Pad", node_->name, {image(0), pads, value}, node_->name);
    constexpr const char* modes[] = {"constant", "edge", "reflect", "wrap"};
    emit(node.text("mode", modes[static_cast<int>(op.by)]));
  }
  /// Channels as groups x members, which change places.
  void operator()(const ChannelShuffle& op) {
    const Shape& y = node_->shape;
    const std::string grouped = beside(".grouped"), swapped = beside(".swapped");
    const std::string groups = add_integers(".grouped.shape", {0, op.groups, y.c / op.groups, y.h, y.w});
    const std::string back = add_integers(".shape", {0, y.c, y.h, y.w});
    emit(NodeOut("Reshape", grouped, {image(0), groups}, grouped));
    emit(NodeOut("Transpose", swapped, {grouped}, swapped).integers("perm", {0, 2, 1, 3, 4}));
    emit(NodeOut("Reshape", node_->name, {swapped, back}, node_->name));
  }
  void operator()(const Concat&) { emit(NodeOut("Concat", node_->name, all(), node_->name).integer("axis", 1)); }

  void operator()(const Slice& op) {
    const std::string starts = add_integers(".starts", {op.first});
    const std::string ends = add_integers(".ends", {std::int64_t{op.first} + op.channels});
    const std::string axes = add_integers(".axes", {1});
    emit(NodeOut("Slice", node_->name, {same(0), starts, ends, axes}, node_->name));
  }

  void operator()(const SoftmaxCrossEntropy&) { refuse(); }
  void operator()(const SigmoidCrossEntropy&) { refuse(); }
  void operator()(const Embedding&) { refuse(); }
  void operator()(const Lstm&) { refuse(); }

 private:
  void refuse() {
    refused_ += (refused_.empty() ? "" : "; ") + std::string("node \"") + node_->name + "\" is " + to_string(node_->op);
  }
  void emit(const NodeOut& node) { out_.add_message(1, node.bytes()); }

  std::size_t input(std::size_t i) const { return static_cast<std::size_t>(node_->inputs[i]); }

  /// The name of an operand as it is; the result is a matrix if it is one.
  std::string same(std::size_t i) {
    matrix_[id_] = matrix_[input(i)];
    return graph_.nodes()[input(i)].name;
  }

  /// The name of an operand of four axes.
  std::string image(std::size_t i) {
    const std::size_t x = input(i);
    const std::string& name = graph_.nodes()[x].name;
    if (!matrix_[x]) return name;
    const std::string operand = ".x" + std::to_string(i), wide = beside(operand);
    const std::string axes = add_integers(operand + ".axes", {2, 3});
    emit(NodeOut("Unsqueeze", wide, {name, axes}, wide));
    return wide;
  }

  /// The names of all operands: matrices if all are, else of four axes.
  std::vector<std::string> all() {
    bool matrices = true;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) matrices = matrices && matrix_[input(i)];
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      names.push_back(matrices ? graph_.nodes()[input(i)].name : image(i));
    }
    matrix_[id_] = matrices;
    return names;
  }

  NodeOut with_weights(const char* op_type, bool bias, const std::vector<std::int64_t>& extents) {
    std::vector<std::string> operands = {image(0), parameter("weight", extents)};
    if (bias) operands.push_back(parameter("bias", {extents[0]}));
    return {op_type, node_->name, operands, node_->name};
  }

  template <class Pool>
  NodeOut pool(const char* op_type, const Pool& op) {
    return NodeOut(op_type, node_->name, {image(0)}, node_->name)
        .size("kernel_shape", op.window)
        .size("strides", op.stride)
        .pads(op.pad)
        .integer("ceil_mode", op.rounding == Rounding::up ? 1 : 0);
  }

  /// Adds a parameter as an initializer, unless another node has added it, and gives its name.
  std::string parameter(const char* part, const std::vector<std::int64_t>& extents) {
    const auto first = first_.find(node_->name + "." + part);
    const std::string name = first == first_.end() ? node_->name + "." + part : first->second;
    const auto written = written_.find(name);
    if (written != written_.end()) return shared(part, extents, written->second);
    const auto found = weights_.find(name);
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    if (found == weights_.end()) throw UsageError(file_ + ": the weights lack \"" + name + "\"");
    if (static_cast<std::int64_t>(found->second.values.size()) != count) {
      throw UsageError(file_ + ": \"" + name + "\" has " + std::to_string(found->second.values.size()) +
                       " numbers, and the graph's has " + std::to_string(count));
    }
    const std::string initializer = beside("." + std::string(part));
    add_numbers(initializer, extents, found->second.values);
    written_[name] = {initializer, extents};
    return initializer;
  }

  struct Written {
    std::string initializer;
    std::vector<std::int64_t> extents;
  };

  /// A parameter that another node has, in this one's extents.
  std::string shared(const char* part, const std::vector<std::int64_t>& extents, const Written& written) {
    if (extents == written.extents) return written.initializer;
    const std::string reshaped = beside("." + std::string(part));
    emit(NodeOut("Reshape", reshaped, {written.initializer, add_integers("." + std::string(part) + ".shape", extents)},
                 reshaped));
    return reshaped;
  }

  /// A name for what belongs to the node: its own and a suffix, and more where another value has that.
  std::string beside(const std::string& suffix) {
    std::string name = node_->name + suffix;
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  std::string add_number(const char* suffix, double value) {
    std::string name = beside(suffix);
    add_numbers(name, {}, std::span(&value, 1));
    return name;
  }

  void add_numbers(const std::string& name, const std::vector<std::int64_t>& extents, std::span<const double> values) {
    if (values.size() > longest / sizeof(float)) fail_long();
    const auto beyond = std::find_if(values.begin(), values.end(), [](double v) { return overflows(DType::f32, v); });
    if (beyond != values.end()) {
      throw FileError(file_ + ": \"" + name + "\" has " + std::to_string(*beyond) + ", which is out of range for f32");
    }
    std::string raw(values.size() * sizeof(float), '\0');
    encode(DType::f32, values, std::as_writable_bytes(std::span(raw)));
    std::string tensor;
    Writer writer(tensor);
    if (!extents.empty()) writer.add_packed_int64(1, extents.begin(), extents.end());
    writer.add_int32(2, static_cast<std::int32_t>(onnx::ElementType::f32));
    writer.add_string(8, name);
    writer.add_bytes(9, raw);
    if (message_.size() + tensor.size() > longest) fail_long();
    out_.add_message(5, tensor);
  }

  std::string add_integers(const std::string& suffix, const std::vector<std::int64_t>& values) {
    std::string name = beside(suffix), tensor;
    Writer writer(tensor);
    writer.add_int64(1, static_cast<std::int64_t>(values.size()));
    writer.add_int32(2, static_cast<std::int32_t>(onnx::ElementType::i64));
    writer.add_packed_int64(7, values.begin(), values.end());
    writer.add_string(8, name);
    out_.add_message(5, tensor);
    return name;
  }

  static std::string value_info(const std::string& name, const Shape& its, bool matrix) {
    std::string shape, tensor, type, value;
    Writer dims(shape);
    {
      Writer batch(dims, 1);
      batch.add_string(2, "batch");
    }
    std::vector<std::int64_t> others = {its.c};
    if (!matrix) others.insert(others.end(), {its.h, its.w});
    for (const std::int64_t extent : others) {
      Writer dim(dims, 1);
      dim.add_int64(1, extent);
    }
    Writer(tensor).add_int32(1, static_cast<std::int32_t>(onnx::ElementType::f32));
    Writer(tensor).add_message(2, shape);
    Writer(type).add_message(1, tensor);
    Writer(value).add_string(1, name);
    Writer(value).add_message(2, type);
    return value;
  }

  [[noreturn]] void fail_long() const { throw FileError(file_ + ": the model would be longer than 2 GB"); }

  std::string file_;
  const Graph& graph_;
  const TensorFile& weights_;
  std::unordered_set<std::string> taken_;               ///< names of values of the file
  std::unordered_map<std::string, std::string> first_;  ///< of the aliases of shared parameters
  std::unordered_map<std::string, Written> written_;    ///< parameters by their first names
  std::vector<bool> matrix_;                            ///< by node: whether its value is a matrix in the file
  std::string message_, refused_;
  Writer out_;
  std::size_t id_ = 0;
  const Node* node_ = nullptr;
};

}  // namespace

void write_onnx(const std::filesystem::path& path, const Graph& graph, const TensorFile& weights) {
  if (graph.nodes().empty()) throw UsageError(path.string() + ": the graph has no nodes");
  const std::string body = Exporter(path.string(), graph, weights).message();
  std::string set, model;
  Writer(set).add_string(1, "");
  Writer(set).add_int64(2, opset);
  Writer writer(model);
  writer.add_int64(1, ir_version);
  writer.add_string(2, "lamina");
  writer.add_message(8, set);
  writer.add_message(7, body);
  if (model.size() > longest) throw FileError(path.string() + ": the model would be longer than 2 GB");
  NewFile file(path);
  file.write(std::as_bytes(std::span(model)));
  file.keep();
}

}  // namespace lamina
