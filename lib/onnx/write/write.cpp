// Writing a graph as a model. A fully connected op becomes a Gemm of matrices: a Flatten comes before it, and an
// Unsqueeze after it if an op needs rows and columns again. When the model is read, these two make no nodes.

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lamina/onnx.h"
#include "lib/core/text/one_of.h"
#include "lib/core/units/functions.h"
#include "lib/core/units/resize_axis.h"
#include "lib/onnx/operators.h"
#include "model_out.h"

namespace lamina {
namespace {

using onnx::AttributeOut;
using onnx::Extents;

Extents both(Size size) { return {size.h, size.w}; }
Extents around(Size pad) { return {pad.h, pad.w, pad.h, pad.w}; }

/// The order of a parameter's equal parts in the file: the index of each part; -1: a part of zeros.
struct Gathered {
  std::vector<int> places = {0};
  int parts = 1;
  bool operator==(const Gathered&) const = default;
};

/// A parameter in the file.
struct Initializer {
  std::string name;
  Extents extents;
  Gathered gathered;
};

class Exporter {
 public:
  Exporter(std::string file, const Graph& graph, const TensorFile& weights)
      : file_(std::move(file)), graph_(graph), weights_(weights), matrix_(graph.nodes().size(), false), out_(file_) {
    for (const Node& node : graph.nodes()) out_.take(node.name);
    for (const auto& all : {graph.parameters(), graph.states()})
      for (const Stored& its : all)
        for (const std::string& alias : its.aliases) first_[alias] = its.name;
    for (const Stored& its : graph.parameters()) trains_.insert(its.name);
  }

  std::string bytes() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      id_ = i;
      node_ = &graph_.nodes()[i];
      std::visit(*this, node_->op);
    }
    if (!refused_.empty()) throw Unsupported(file_ + ": cannot be written as ONNX: " + refused_);
    const Node& last = graph_.nodes().back();
    out_.add_output(last.name, last.shape, matrix_.back());
    return out_.bytes(graph_.name());
  }

  void operator()(const Input&) { out_.add_input(node_->name, node_->shape); }

  void operator()(const Conv& op) { convolution("Conv", op); }
  void operator()(const ConvTranspose& op) {
    convolution("ConvTranspose", op, {{"output_padding", both(op.output_pad)}});
  }

  void operator()(const FullyConnected& op) {
    const std::size_t x = input(0);
    std::string from = graph_.nodes()[x].name;
    if (!matrix_[x]) from = part("Flatten", ".flat", {from});
    std::vector<std::string> operands = {from, parameter("weight", {op.outputs, node_->params[0].image()})};
    if (op.bias) operands.push_back(parameter("bias", {op.outputs}));
    emit("Gemm", operands, {{"transB", 1}});
    matrix_[id_] = true;
  }

  void operator()(const MaxPool& op) { emit("MaxPool", {image(0)}, windows(op)); }
  void operator()(const AveragePool& op) {
    std::vector<AttributeOut> attributes = windows(op);
    attributes.emplace_back("count_include_pad", std::int64_t{op.count_padding});
    emit("AveragePool", {image(0)}, std::move(attributes));
  }
  void operator()(const GlobalAveragePool&) { emit("GlobalAveragePool", {image(0)}); }

  void operator()(const BatchNorm& op) {
    std::vector<std::string> operands = {same(0)};
    for (const char* its : {"weight", "bias", "running_mean", "running_var"})
      operands.push_back(parameter(its, {node_->shape.c}));
    emit("BatchNormalization", operands, {{"epsilon", op.epsilon}, {"momentum", 1 - op.momentum}});
  }

  void operator()(const GroupNorm& op) {
    emit("GroupNormalization", scale_and_shift(image(0), op.affine),
         {{"epsilon", op.epsilon}, {"num_groups", op.groups}});
  }

  /// Channels come last for a LayerNormalization.
  void operator()(const LayerNorm& op) {
    std::string x = same(0);
    const bool is_matrix = matrix_[id_];
    if (!is_matrix) x = part("Transpose", ".last", {x}, {{"perm", Extents{0, 2, 3, 1}}});
    const std::vector<std::string> operands = scale_and_shift(x, op.affine);
    const std::vector<AttributeOut> attributes = {{"epsilon", op.epsilon}};
    if (is_matrix) return emit("LayerNormalization", operands, attributes);
    const std::string norm = beside(".norm");  // the node, and not its Transpose, has the name
    out_.add({"LayerNormalization", node_->name, operands, norm, attributes});
    out_.add({"Transpose", norm, {norm}, node_->name, {{"perm", Extents{0, 3, 1, 2}}}});
  }

  void operator()(const Lrn& op) {
    if (op.size % 2 == 0) return refuse();
    emit("LRN", {image(0)}, {{"size", op.size}, {"alpha", op.alpha}, {"beta", op.beta}, {"bias", op.k}});
  }

  void operator()(const Dropout& op) { emit("Dropout", {same(0), add_number(".ratio", op.rate)}); }

  void operator()(const Relu&) { emit("Relu", {same(0)}); }
  void operator()(const Pointwise& op) {
    const std::string x = same(0);
    static_assert(std::size(onnx::function_names) == function_rows.size());
    const char* const name = onnx::function_names[static_cast<int>(op.function)];
    switch (op.function) {
      case Function::clip: return emit(name, {x, add_number(".low", op.a), add_number(".high", op.b)});
      case Function::hard_sigmoid: return emit(name, {x}, {{"alpha", op.a}, {"beta", op.b}});
      case Function::silu: return emit(name, {x, part("Sigmoid", ".sigmoid", {x})});
      case Function::elu:
        if (op.b != 1) return emit("Selu", {x}, {{"alpha", op.a}, {"gamma", op.b}});
        [[fallthrough]];
      case Function::leaky_relu:
      case Function::celu: return emit(name, {x}, {{"alpha", op.a}});
      case Function::gelu_tanh: return emit(name, {x}, {{"approximate", std::string("tanh")}});
      case Function::pow: return emit(name, {x, add_number(".exponent", op.a)});
      case Function::sigmoid:
      case Function::tanh:
      case Function::hard_swish:
      case Function::gelu:
      case Function::softplus:
      case Function::mish:
      case Function::exp:
      case Function::log:
      case Function::sqrt:
      case Function::abs: return emit(name, {x});
    }
  }
  void operator()(const Softmax& op) {
    const std::string x = op.axis == Axis::channel ? same(0) : image(0);
    emit(op.log ? "LogSoftmax" : "Softmax", {x}, {{"axis", 1 + static_cast<int>(op.axis)}});
  }
  void operator()(const Reduce& op) {
    Extents axes;
    for (const auto& [along, axis] : {std::pair(op.channels, 1), {op.rows, 2}, {op.columns, 3}})
      if (along) axes.push_back(axis);
    emit(onnx::reduction_names[static_cast<int>(op.by)], {image(0), add_integers(".axes", axes)});
  }

  void operator()(const Add&) {
    const std::vector<std::string> operands = all();
    emit(operands.size() == 2 ? "Add" : "Sum", operands);
  }
  void operator()(const Binary& op) { emit(onnx::binary_function_names[static_cast<int>(op.function)], all()); }
  void operator()(const ScaleShift& op) {
    const std::string x = same(0), scaled = beside(".scaled");
    const Extents extents = op.by_channel ? of_channels() : Extents{};
    out_.add({"Mul", node_->name, {x, parameter("scale", extents)}, scaled});
    out_.add({"Add", scaled, {scaled, parameter("shift", extents)}, node_->name});
  }
  void operator()(const PRelu& op) {
    const std::string x = same(0);
    emit("PRelu", {x, parameter("weight", op.by_channel ? of_channels() : Extents{1})});
  }
  void operator()(const Pad& op) {
    const std::string pads = add_integers(
        ".pads", {0, op.channels_before, op.before.h, op.before.w, 0, op.channels_after, op.after.h, op.after.w});
    const std::string value = add_number(".value", op.value);
    emit("Pad", {image(0), pads, value}, {{"mode", std::string(onnx::pad_modes[static_cast<int>(op.by)])}});
  }
  void operator()(const Resize& op) {
    constexpr const char* modes[] = {"asymmetric", "half_pixel", "half_pixel", "align_corners"};
    const Shape& x = graph_.nodes()[input(0)].shape;
    const double factors[] = {op.step_h > 0 ? 1 / op.step_h : double(op.to.h) / x.h,
                              op.step_w > 0 ? 1 / op.step_w : double(op.to.w) / x.w};
    std::vector<std::string> operands = {image(0), "", ""};
    if (op.step_h == 0 && op.step_w == 0) {
      operands.push_back(add_integers(".sizes", both(op.to)));
    } else {  // the extents follow from the factors
      if (std::floor(x.h * factors[0] + 1e-6) != op.to.h || std::floor(x.w * factors[1] + 1e-6) != op.to.w)
        return refuse();
      operands[2] = add_numbers(".scales", {2}, factors);
    }
    emit("Resize", operands,
         {{"axes", Extents{2, 3}},
          {"mode", std::string(is_linear(op.by) ? "linear" : "nearest")},
          {"coordinate_transformation_mode", std::string(modes[static_cast<int>(op.by)])},
          {"nearest_mode", std::string(op.by == ResizeBy::nearest ? "floor" : "round_prefer_ceil")}});
  }
  void operator()(const Reorder& op) {
    const Shape& y = node_->shape;
    Extents extents(op.extents.begin(), op.extents.end()), order = {0};
    extents.insert(extents.begin(), 0);
    for (const int axis : op.order) order.push_back(axis + 1);
    const std::string split = add_integers(".split.shape", extents), back = add_integers(".shape", {0, y.c, y.h, y.w});
    const std::string parts = part("Reshape", ".split", {image(0), split});
    emit("Reshape", {part("Transpose", ".moved", {parts}, {{"perm", order}}), back});
  }
  void operator()(const Concat& op) {
    emit("Concat", all(op.axis != Axis::channel), {{"axis", 1 + static_cast<std::int64_t>(op.axis)}});
  }

  void operator()(const Slice& op) {
    const std::string starts = add_integers(".starts", {op.first});
    const std::string ends = add_integers(".ends", {op.first + (op.count - std::int64_t{1}) * op.step + 1});
    const std::string axes = add_integers(".axes", {1 + static_cast<std::int64_t>(op.axis)});
    std::vector<std::string> operands = {op.axis == Axis::channel ? same(0) : image(0), starts, ends, axes};
    if (op.step > 1) operands.push_back(add_integers(".steps", {op.step}));
    emit("Slice", operands);
  }

  void operator()(const OneOf<Embedding, SigmoidCrossEntropy, SoftmaxCrossEntropy> auto&) { refuse(); }
  /// In the file steps come first and features last. Gates are i, o, f, g or z, r, n. The bias has two halves: ours,
  /// and zeros (in a GRU except for m).
  void operator()(const Recurrent& op) {
    if (op.vocabulary != 0 || op.gates != Gates::logistic) return refuse();
    const bool gru = op.cell == Cell::gru, last = op.steps == Steps::last;
    const std::int64_t channels = graph_.nodes()[input(0)].shape.c, rows = node_->params[0].n;
    const Gathered weights = gru ? Gathered{{1, 0, 2}, 3} : Gathered{{0, 3, 1, 2}, 4};
    const Gathered bias = gru ? Gathered{{1, 0, 2, -1, -1, 3}, 4} : Gathered{{0, 3, 1, 2, -1, -1, -1, -1}, 4};
    const std::string x = part("Reshape", ".sequences", {image(0), add_integers(".shape", {0, channels, -1})});
    const std::vector<std::string> operands = {part("Transpose", ".x", {x}, {{"perm", Extents{2, 0, 1}}}),
                                               parameter("weight_ih_l0", {1, rows, channels}, weights),
                                               parameter("weight_hh_l0", {1, rows, op.hidden}, weights),
                                               parameter("bias_l0", {1, 2 * rows}, bias)};
    std::vector<AttributeOut> attributes = {{"hidden_size", op.hidden},
                                            {"direction", std::string(op.reverse ? "reverse" : "forward")}};
    if (gru) attributes.emplace_back("linear_before_reset", 1);
    const std::string h = beside(".h");
    out_.add({gru ? "GRU" : "LSTM", node_->name, operands, h, attributes, last ? 1 : 0});
    matrix_[id_] = last;
    if (last) return out_.add({"Squeeze", h, {h, add_integers(".axes", {0})}, node_->name});
    out_.add({"Transpose", h, {h}, node_->name, {{"perm", Extents{2, 3, 0, 1}}}});
  }

 private:
  void refuse() {
    refused_ += (refused_.empty() ? "" : "; ") + std::string("node \"") + node_->name + "\" is " + to_string(node_->op);
  }
  /// Adds the node of the file that has the name and the value of the graph's node.
  void emit(const char* op_type, std::vector<std::string> inputs, std::vector<AttributeOut> attributes = {}) {
    out_.add({op_type, node_->name, std::move(inputs), node_->name, std::move(attributes)});
  }
  /// Adds another node of the file, which emit()'s node needs, and returns the name of its value.
  std::string part(const char* op_type, const std::string& suffix, std::vector<std::string> inputs,
                   std::vector<AttributeOut> attributes = {}) {
    const std::string name = beside(suffix);
    out_.add({op_type, name, std::move(inputs), name, std::move(attributes)});
    return name;
  }

  std::size_t input(std::size_t i) const { return static_cast<std::size_t>(node_->inputs[i]); }

  /// The name of an operand. The result is a matrix if the operand is one.
  std::string same(std::size_t i) {
    matrix_[id_] = matrix_[input(i)];
    return graph_.nodes()[input(i)].name;
  }

  /// The extents of a tensor with a number for each channel of the result.
  Extents of_channels() const { return matrix_[id_] ? Extents{node_->shape.c} : Extents{node_->shape.c, 1, 1}; }

  /// The name of an operand of four axes.
  std::string image(std::size_t i) {
    const std::size_t x = input(i);
    const std::string& name = graph_.nodes()[x].name;
    if (!matrix_[x]) return name;
    const std::string operand = ".x" + std::to_string(i);
    return part("Unsqueeze", operand, {name, add_integers(operand + ".axes", {2, 3})});
  }

  /// The names of all operands: as matrices if all of them are matrices and not `as_images`, else with four axes.
  std::vector<std::string> all(bool as_images = false) {
    matrix_[id_] =
        !as_images && std::ranges::all_of(node_->inputs, [&](int i) { return matrix_[static_cast<std::size_t>(i)]; });
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i)
      names.push_back(matrix_[id_] ? graph_.nodes()[input(i)].name : image(i));
    return names;
  }

  template <class Convolution>
  void convolution(const char* op_type, const Convolution& op, std::vector<AttributeOut> attributes = {}) {
    const Shape& w = node_->params[0];
    std::vector<std::string> operands = {image(0), parameter("weight", {w.n, w.c, w.h, w.w})};
    if (op.bias) operands.push_back(parameter("bias", {op.channels}));
    attributes.insert(attributes.end(), {{"kernel_shape", both(op.kernel)},
                                         {"strides", both(op.stride)},
                                         {"pads", around(op.pad)},
                                         {"dilations", both(op.dilation)},
                                         {"group", op.groups}});
    emit(op_type, std::move(operands), std::move(attributes));
  }

  /// Operands of a norm. The ones and zeros of a norm that is not affine are no parameters.
  std::vector<std::string> scale_and_shift(const std::string& x, bool affine) {
    const std::int64_t channels = node_->shape.c;
    if (affine) return {x, parameter("weight", {channels}), parameter("bias", {channels})};
    const std::vector<double> ones(static_cast<std::size_t>(channels), 1), zeros(ones.size(), 0);
    const std::string scale = add_numbers(".ones", {channels}, ones);
    return {x, scale, add_numbers(".zeros", {channels}, zeros)};
  }

  template <class Pool>
  static std::vector<AttributeOut> windows(const Pool& op) {
    return {{"kernel_shape", both(op.window)},
            {"strides", both(op.stride)},
            {"pads", around(op.pad)},
            {"ceil_mode", op.rounding == Rounding::up ? 1 : 0}};
  }

  /// Adds a parameter as an initializer, unless another node has added it, and returns its name.
  std::string parameter(const char* its, const Extents& extents, const Gathered& gathered = {}) {
    const std::string suffix = std::string(".") + its;
    const auto first = first_.find(node_->name + suffix);
    const std::string name = first == first_.end() ? node_->name + suffix : first->second;
    if (const auto written = written_.find(name); written != written_.end()) {  // by another node, in its extents
      const auto& [initializer, others, in_order] = written->second;
      if (in_order != gathered)
        throw Unsupported(file_ + ": \"" + name +
                          "\" would need two orders of gates in the file: there, an LSTM or GRU shares no parameters");
      return others == extents ? initializer
                               : part("Reshape", suffix, {initializer, add_integers(suffix + ".shape", extents)});
    }
    const auto found = weights_.find(name);
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    const std::int64_t each = count / std::ssize(gathered.places);
    count = each * gathered.parts;
    if (found == weights_.end()) throw UsageError(file_ + ": the weights lack \"" + name + "\"");
    if (static_cast<std::int64_t>(found->second.values.size()) != count)
      throw UsageError(file_ + ": \"" + name + "\" has " + std::to_string(found->second.values.size()) +
                       " numbers, and the graph's has " + std::to_string(count));
    std::span<const double> values = found->second.values;
    std::vector<double> moved;
    if (gathered.parts > 1) {
      for (const int place : gathered.places) {
        moved.resize(moved.size() + static_cast<std::size_t>(each));
        if (place >= 0) std::copy_n(values.begin() + place * each, each, moved.end() - each);
      }
      values = moved;
    }
    const std::string initializer = add_numbers(suffix, extents, values);
    out_.add_role(initializer, trains_.contains(name));
    written_[name] = {initializer, extents, gathered};
    return initializer;
  }

  /// A free name for a value that belongs to the node: the node's name with a suffix.
  std::string beside(const std::string& suffix) { return out_.free_name(node_->name + suffix); }

  std::string add_number(const char* suffix, double value) { return add_numbers(suffix, {}, std::span(&value, 1)); }
  std::string add_numbers(const std::string& suffix, const Extents& extents, std::span<const double> values) {
    return out_.add_numbers(beside(suffix), extents, values);
  }
  std::string add_integers(const std::string& suffix, const Extents& values) {
    return out_.add_integers(beside(suffix), values);
  }

  std::string file_;
  const Graph& graph_;
  const TensorFile& weights_;
  std::unordered_map<std::string, std::string> first_;    ///< first names, by alias
  std::unordered_set<std::string> trains_;                ///< parameters, by their first names
  std::unordered_map<std::string, Initializer> written_;  ///< by first name
  std::vector<bool> matrix_;                              ///< by node: whether its value is a matrix in the file
  std::string refused_;
  onnx::ModelOut out_;
  std::size_t id_ = 0;
  const Node* node_ = nullptr;
};

}  // namespace

void write_onnx(const std::filesystem::path& path, const Graph& graph, const TensorFile& weights) {
  if (graph.nodes().empty()) throw UsageError(path.string() + ": the graph has no nodes");
  const std::string model = Exporter(path.string(), graph, weights).bytes();
  NewFile file(path);
  file.write(std::as_bytes(std::span(model)));
  file.keep();
}

}  // namespace lamina
