// Stand-ins for the results of a refused node, so that later nodes are judged, too. Their extents come from the file
// (value_info) or, if the operator keeps extents, from its operand; else they are unknown.

#include <algorithm>

#include "lamina/error.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

/// Whether the result has the extents of the first operand.
bool keeps_extents(std::string_view op) {
  constexpr std::string_view others =
      "BatchNormalization CumSum Erf GroupNormalization InstanceNormalization LRN LayerNormalization LogSoftmax "
      "Softmax Swish";
  return is_any_of(op, of_elements) || is_any_of(op, others);
}

}  // namespace

/// The extents that the file states for a value: numbers, or names of open axes of inputs. Empty: it states none.
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

void Importer::stand_in(const NodeMessage& node) {
  const bool computed = !is_any_of(node.op_type, "Shape Size") && std::ranges::any_of(node.inputs, [&](auto input) {
    const Known* found = known(input);
    return found != nullptr && found->is_computed();
  });
  for (const std::string_view output : node.outputs) {
    if (output.empty() || known(output) != nullptr) continue;
    values_[output] = {};
    if (!computed) continue;
    values_[output] = {Unseen{}};
    unsure_.insert(output);
    try {
      ElementType type = ElementType::f32;
      Extents its = stated_extents(output, type);
      const Known* first = known(node.inputs.front());
      const auto* x = first == nullptr ? nullptr : std::get_if<DynamicValue>(&first->is);
      if (its.empty() && x != nullptr && !x->is_pending() && keeps_extents(node.op_type))
        its = extents(x->view), type = x->type;
      if (its.empty() || element_count(its).value_or(0) == 0) continue;
      const GraphLayout layout = layout_of(its, labels_of(output, its.size(), 0));
      const Value value = result_.graph.input(layout.shape, free_name(std::string(output)));
      values_[output] = {DynamicValue{.value = value, .view = layout.view, .type = type}};
    } catch (const Error&) {  // without extents, or with extents beyond int
    } catch (const Refusal&) {
    }
  }
}

}  // namespace lamina::onnx
