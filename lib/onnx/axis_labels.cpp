// Layout inference: the axis labels of an input follow from the operators that read it.

#include <algorithm>

#include "lamina/error.h"
#include "operators.h"

namespace lamina::onnx {

AxisLabels Importer::labels_of(std::string_view value, std::size_t rank, int depth) {
  constexpr int deepest = 16;
  if (depth < deepest) {
    for (const std::size_t reader : nodes_.readers(value)) {
      const NodeMessage& node = nodes_[reader];
      if (node.op_type == "Shape") continue;  // takes any order
      const auto operand = std::find(node.inputs.begin(), node.inputs.end(), value) - node.inputs.begin();
      try {
        AxisLabels labels = labels_for_operand(node, static_cast<std::size_t>(operand), rank, depth);
        if (!labels.empty()) return labels;
      } catch (const FileError&) {
        // The error may come only from a rank that does not fit. If the node itself is invalid, its import throws.
      }
      if (depth > 0) break;  // one path through the graph is followed, not all
    }
  }
  return depth == 0 ? usual_labels(rank) : "";
}

namespace {

/// Labels with `channels` axes of channels from `axis` on. Axes before them are images, axes after them are pixels.
AxisLabels labels_around(std::size_t axis, std::size_t channels, std::size_t rank) {
  AxisLabels labels = std::string(axis, 'n') + std::string(channels, 'c');
  const std::size_t rest = rank - labels.size();
  if (rest > 0) labels += std::string(rest - 1, 'h') + (rest == 1 ? 'h' : 'w');
  return labels;
}

}  // namespace

/// The labels that this reader needs. Empty: it takes any labels.
AxisLabels Importer::labels_for_operand(const NodeMessage& node, std::size_t operand, std::size_t rank, int depth) {
  const Attributes attributes(node, name_);
  const std::string_view op = node.op_type;
  if (rank == 0) return "";
  const auto axis = [&](std::int64_t otherwise) {
    return axis_of(attributes, attributes.integer("axis", otherwise), rank);
  };
  if (op == "Concat" || op == "Split") {
    const AxisLabels after = node.outputs.empty() ? "" : labels_of(node.outputs.front(), rank, depth + 1);
    const std::size_t along = axis(op == "Split" ? 0 : 1);
    return after.empty() && along < 2 ? labels_around(along, 1, rank) : after;
  }
  if (op == "Gemm" && operand == 0 && attributes.integer("transA", 0) != 0 && rank == 2) return "cn";
  if (op == "MatMul" && operand == 0 && rank > 2) return std::string(rank - 2, 'n') + "hc";
  if ((op == "LSTM" || op == "GRU") && operand == 0 && rank == 3)
    return attributes.integer("layout", 0) != 0 ? "nhc" : "hnc";
  const std::string_view result = node.outputs.empty() ? "" : node.outputs.front();
  if (op == "Gather" && operand == 1) {  // the features of a table come last
    const AxisLabels after = labels_of(result, rank + 1, depth + 1);
    if (after.size() == rank + 1 && after.back() == 'c' && after.find('c') == rank) return after.substr(0, rank);
    return rank == 1 ? "n" : labels_around(1, 0, rank);
  }
  if (op == "Unsqueeze" && operand == 0) {
    std::optional<Extents> axes = attributes.integers("axes");
    const Constant* list = node.inputs.size() > 1 ? constant_of(node.inputs[1]) : nullptr;
    if (!axes && list != nullptr) axes = attributes.list(*list);
    if (!axes || axes->size() > 4) return "";
    AxisLabels labels = labels_of(result, rank + axes->size(), depth + 1);
    if (labels.empty()) return "";
    for (const std::int64_t at : *axes) labels[axis_of(attributes, at, labels.size())] = ' ';
    std::erase(labels, ' ');
    return labels.size() == rank ? labels : "";
  }
  if (op == "Transpose") {
    const std::vector<std::size_t> order = permutation(attributes, rank);
    const AxisLabels after = labels_of(result, rank, depth + 1);
    guesses_labels_ = guesses_labels_ || after.empty();
    const AxisLabels wanted = after.empty() ? usual_labels(rank) : after;
    AxisLabels labels(rank, ' ');
    for (std::size_t i = 0; i < rank; ++i) labels[order[i]] = wanted[i];
    return labels;
  }
  if (is_any_of(op, "Add Sub Mul Div PRelu") && node.inputs.size() == 2) {
    // The axes along which a constant has several numbers become channels. The second axis alone has the usual labels.
    const Constant* other = constant_of(node.inputs[1 - operand % 2]);
    const Extents its = other == nullptr ? Extents{} : aligned(attributes, opset_, other->extents, rank);
    std::vector<std::size_t> numbered;
    for (std::size_t i = 0; its.size() <= rank && i < its.size(); ++i)
      if (its[i] != 1) numbered.push_back(i + rank - its.size());
    if (!numbered.empty() && numbered != std::vector<std::size_t>{1})
      return labels_around(numbered.front(), numbered.back() - numbered.front() + 1, rank);
  }
  if (is_any_of(op, of_elements) || is_any_of(op, "Add Cast Dropout Identity Pad Pow Slice Sum"))
    return labels_of(result, rank, depth + 1);
  if (op == "LayerNormalization" && axis(-1) + 1 == rank) return channels_last(rank);
  constexpr std::string_view of_images =
      "Conv ConvTranspose MaxPool AveragePool BatchNormalization GroupNormalization InstanceNormalization Resize "
      "Upsample";
  return is_any_of(op, of_images) ? usual_labels(rank) : "";
}

}  // namespace lamina::onnx
