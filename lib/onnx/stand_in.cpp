// Values behind a node that is not read, so that the nodes behind it are judged, too: by the extents that the file
// states (value_info), else by the operator's own rule. Of others nothing is known.

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "fold.h"
#include "importer.h"
#include "lamina/error.h"

namespace lamina::onnx {
namespace {

/// Operators whose result has the extents of their first operand, and that are not folded.
bool keeps_extents(std::string_view op) {
  static const std::set<std::string_view> all = {"BatchNormalization",
                                                 "Celu",
                                                 "Clip",
                                                 "CumSum",
                                                 "Elu",
                                                 "Erf",
                                                 "Exp",
                                                 "Gelu",
                                                 "GroupNormalization",
                                                 "HardSigmoid",
                                                 "HardSwish",
                                                 "InstanceNormalization",
                                                 "LRN",
                                                 "LayerNormalization",
                                                 "LeakyRelu",
                                                 "Log",
                                                 "LogSoftmax",
                                                 "Mish",
                                                 "PRelu",
                                                 "Relu",
                                                 "Selu",
                                                 "Sigmoid",
                                                 "Softmax",
                                                 "Softplus",
                                                 "Softsign",
                                                 "Swish",
                                                 "Tanh"};
  return all.contains(op);
}

/// Of operators that change rows and columns. Empty: the attributes are others than PyTorch writes.
Extents scaled(const Attributes& node, const std::vector<const Constant*>& operands) {
  Extents all = operands[0]->extents;
  const std::string_view op = node.node().op_type;
  const Constant* last = operands.back();
  if (op != "ConvTranspose") {  // sizes are the fourth operand of a Resize; else there are scales
    if (last == nullptr || last->count() != static_cast<std::int64_t>(all.size())) return {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double number = last->at(static_cast<std::int64_t>(i));
      all[i] = to_integer(std::floor(operands.size() == 4 ? number : number * static_cast<double>(all[i])));
    }
    return all;
  }
  const auto list = [&](const char* name, std::int64_t otherwise, std::size_t size) {
    Extents its = node.integers(name).value_or(Extents(size, otherwise));
    its.resize(size, otherwise);
    return its;
  };
  const Extents& w = operands.at(1)->extents;
  if (w.size() != all.size() || all.size() < 3 || node.has("output_shape") || node.has("auto_pad")) return {};
  const std::size_t axes = all.size() - 2;
  const Extents stride = list("strides", 1, axes), dilation = list("dilations", 1, axes),
                pads = list("pads", 0, 2 * axes), more = list("output_padding", 0, axes);
  all[1] = w[1] * node.integer("group", 1);
  for (std::size_t i = 0; i < axes; ++i)
    all[i + 2] = stride[i] * (all[i + 2] - 1) + more[i] + (w[i + 2] - 1) * dilation[i] + 1 - pads[i] - pads[axes + i];
  return all;
}

}  // namespace

/// The extents of a value by the file, where each is a number or the name of an axis of an input.
Extents Importer::stated_extents(std::string_view value) {
  if (stated_.empty())
    for (const auto* all : {&file_.values, &file_.outputs})
      for (const ValueMessage& each : *all) stated_.emplace(each.name, &each);
  const auto found = stated_.find(value);
  Extents extents;
  if (found == stated_.end() || !found->second->shape) return extents;
  for (const DimMessage& dim : *found->second->shape) {
    extents.push_back(dim.value.value_or(0));
    for (const OnnxValue& input : result_.inputs) {
      const std::vector<DimMessage>& its = *inputs_.at(input.name)->shape;
      for (std::size_t i = 0; i < its.size() && !dim.value && !dim.param.empty(); ++i)
        if (its[i].param == dim.param) extents.back() = input.extents[i];
    }
  }
  return extents;
}

/// The extents of the first result by the operator, as of equal numbers.
Extents Importer::ruled_extents(const Attributes& node) {
  std::deque<Constant> made;
  std::vector<const Constant*> operands;
  for (const std::string_view input : node.node().inputs) {
    const Known* found = known(input);
    const auto* value = found == nullptr ? nullptr : std::get_if<DynamicValue>(&found->is);
    if (value != nullptr && (value->padding || value->squares)) return {};
    if (value != nullptr)
      made.push_back({.type = value->type, .extents = extents(value->view), .values = {1}, .uniform = true});
    operands.push_back(value != nullptr ? &made.back() : input.empty() ? nullptr : constant_of(input));
    if (!input.empty() && operands.back() == nullptr) return {};
  }
  const std::string_view op = node.node().op_type;
  if (operands.empty() || operands[0] == nullptr) return {};
  if (keeps_extents(op)) return operands[0]->extents;
  if (op == "Resize" || op == "Upsample" || op == "ConvTranspose") return scaled(node, operands);
  if (op == "MatMul") {
    Extents a = operands.at(0)->extents, b = operands.at(1)->extents;
    if (a.size() < 2 || b.size() < 2) return {};
    const std::int64_t rows = a[a.size() - 2], columns = b.back();
    a.back() = a[a.size() - 2] = b.back() = b[b.size() - 2] = 1;
    a = broadcast(node, a, b);
    a[a.size() - 2] = rows, a.back() = columns;
    return a;
  }
  const std::optional<Constant> folded =
      fold(node, opset_, operands, path_, [&](std::int64_t count) { consume_budget(count, node.where()); });
  return folded ? folded->extents : Extents{};
}

void Importer::stand_in(const NodeMessage& node) {
  const auto is_computed = [&](std::string_view input) {
    const Known* found = known(input);
    return found != nullptr &&
           (std::holds_alternative<DynamicValue>(found->is) || std::holds_alternative<Unseen>(found->is));
  };
  const bool computed =
      node.op_type != "Shape" && node.op_type != "Size" && std::ranges::any_of(node.inputs, is_computed);
  for (const std::string_view output : node.outputs) {
    if (output.empty() || known(output) != nullptr) continue;
    values_[output] = {};
    if (!computed) continue;
    values_[output] = {Unseen{}};
    unsure_.insert(output);
    try {
      Extents its = stated_extents(output);
      if (its.empty() && output == node.outputs.front()) its = ruled_extents(Attributes(node, name_));
      if (its.empty() || element_count(its).value_or(0) == 0) continue;
      const GraphLayout layout = layout_of(its, labels_of(output, its.size(), 0));
      const auto stated = stated_.find(output);
      const Known* first = known(node.inputs.front());
      const auto* like = first == nullptr ? nullptr : std::get_if<DynamicValue>(&first->is);
      values_[output] = {DynamicValue{.value = result_.graph.input(layout.shape, free_name(std::string(output))),
                                      .view = layout.view,
                                      .type = stated != stated_.end() ? stated->second->type
                                              : like != nullptr       ? like->type
                                                                      : ElementType::f32}};
    } catch (const Error&) {  // no extents, or some beyond int
    } catch (const Refusal&) {
    }
  }
}

}  // namespace lamina::onnx
