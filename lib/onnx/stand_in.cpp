// Values behind a node that is not read, so that the nodes behind it are judged, too: by the extents that the file
// states (value_info), else by the operator's own rule. Of others nothing is known.

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

#include "fold.h"
#include "importer.h"
#include "lamina/error.h"

namespace lamina::onnx {
namespace {

/// Operators whose result has the extents of their first operand, and that are not folded.
bool keeps_extents(std::string_view op) {
  constexpr std::string_view all =
      " BatchNormalization Celu Clip CumSum Elu Erf Exp Gelu GroupNormalization HardSigmoid HardSwish LRN LeakyRelu "
      "InstanceNormalization LayerNormalization Log LogSoftmax Mish PRelu Relu Selu Sigmoid Softmax Softplus Swish "
      "Tanh ";
  return all.find(" " + std::string(op) + " ") != all.npos;
}

/// Of operators that change rows and columns. Empty: the attributes are others than PyTorch writes.
Extents scaled(const Attributes& node, const std::vector<const Constant*>& operands) {
  Extents all = operands[0]->extents;
  if (node.node().op_type != "ConvTranspose") {  // sizes are the fourth operand of a Resize; else there are scales
    const Constant* last = operands.back();
    if (last == nullptr || last->count() != static_cast<std::int64_t>(all.size())) return {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double number = last->at(static_cast<std::int64_t>(i));
      all[i] = to_integer(std::floor(operands.size() == 4 ? number : number * static_cast<double>(all[i])));
    }
    return all;
  }
  const Extents& w = operands.at(1)->extents;
  if (w.size() != all.size() || all.size() < 3 || node.has("output_shape") || node.has("auto_pad")) return {};
  const auto at = [&](const char* name, std::size_t i, std::int64_t otherwise) {
    const Extents its = node.integers(name).value_or(Extents{});
    return i < its.size() ? its[i] : otherwise;
  };
  all[1] = w[1] * node.integer("group", 1);
  for (std::size_t i = 0; i + 2 < all.size(); ++i)
    all[i + 2] = at("strides", i, 1) * (all[i + 2] - 1) + at("output_padding", i, 0) +
                 (w[i + 2] - 1) * at("dilations", i, 1) + 1 - at("pads", i, 0) - at("pads", all.size() - 2 + i, 0);
  return all;
}

}  // namespace

/// The extents of a value by the file, where each is a number or the name of an axis of an input.
Extents Importer::stated_extents(std::string_view value, ElementType& type) {
  if (stated_.empty()) {
    for (const auto* all : {&file_.values, &file_.outputs})
      for (const ValueMessage& each : *all) stated_.push_back(&each);
    std::ranges::stable_sort(stated_, {}, &ValueMessage::name);
  }
  const auto found = std::ranges::lower_bound(stated_, value, {}, &ValueMessage::name);
  Extents extents;
  if (found == stated_.end() || (*found)->name != value || !(*found)->shape) return extents;
  type = (*found)->type;
  for (const DimMessage& dim : *(*found)->shape) {
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
Extents Importer::ruled_extents(const Attributes& node, ElementType& type) {
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
  type = operands[0]->type;
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
  const std::optional<Constant> folded = fold(node, opset_, operands, path_, [&](std::int64_t count) {
    if (count > options_.most_computed_numbers - computed_) throw Refusal{};
  });
  if (!folded) return {};
  type = folded->type;
  return folded->extents;
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
      ElementType type = ElementType::f32;
      Extents its = stated_extents(output, type);
      if (its.empty() && output == node.outputs.front()) its = ruled_extents(Attributes(node, name_), type);
      if (its.empty() || element_count(its).value_or(0) == 0) continue;
      const GraphLayout layout = layout_of(its, labels_of(output, its.size(), 0));
      const Value value = result_.graph.input(layout.shape, free_name(std::string(output)));
      values_[output] = {DynamicValue{.value = value, .view = layout.view, .type = type}};
    } catch (const Error&) {  // no extents, or some beyond int
    } catch (const Refusal&) {
    }
  }
}

}  // namespace lamina::onnx
