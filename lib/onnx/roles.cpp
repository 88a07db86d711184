// How inputs are kept follows from who reads them.

#include <algorithm>

#include "aligned.h"
#include "fold.h"
#include "importer.h"
#include "lamina/error.h"

namespace lamina::onnx {

Roles Importer::roles_of(std::string_view value, std::size_t rank, int depth) const {
  constexpr int deepest = 16;
  if (depth < deepest) {
    for (const std::size_t reader : readers(value)) {
      const NodeMessage& node = *nodes_[reader];
      const auto operand = std::find(node.inputs.begin(), node.inputs.end(), value) - node.inputs.begin();
      try {
        Roles roles = roles_for(node, static_cast<std::size_t>(operand), rank, depth);
        if (!roles.empty()) return roles;
      } catch (const FileError&) {
        // The node says so again when it is imported, if it is wrong and not only of another rank.
      }
      if (depth > 0) break;  // one way through the graph, not all
    }
  }
  return depth == 0 ? usual_roles(rank) : "";
}

namespace {

/// The axis is the channel; those before it count images, those after it pixels.
Roles around(std::size_t axis, std::size_t channels, std::size_t rank) {
  Roles roles = std::string(axis, 'n') + std::string(channels, 'c');
  const std::size_t rest = rank - roles.size();
  if (rest > 0) roles += std::string(rest - 1, 'h') + (rest == 1 ? 'h' : 'w');
  return roles;
}

/// Of the first factor of a MatMul: an axis by which the weights differ is among the channels.
Roles roles_of_factor(std::size_t rank, const std::optional<Extents>& weights) {
  Roles roles = std::string(rank - 2, 'n') + "hc";
  for (std::size_t i = 2; weights && i < std::min(rank, weights->size()); ++i) {
    if ((*weights)[weights->size() - 1 - i] != 1) roles[rank - 1 - i] = 'c';
  }
  return roles;
}

}  // namespace

/// Empty: this reader takes any.
Roles Importer::roles_for(const NodeMessage& node, std::size_t operand, std::size_t rank, int depth) const {
  const Attributes attributes(node, name_);
  const std::string_view op = node.op_type;
  if (rank == 0) return "";
  const auto axis = [&](std::int64_t otherwise) {
    return axis_of(attributes, attributes.integer("axis", otherwise), rank);
  };
  if (op == "Softmax" && opset_ >= 13) return around(axis(-1), 1, rank);
  if (op == "Softmax") {
    const std::int64_t at = attributes.integer("axis", 1);
    const std::size_t first = at == static_cast<std::int64_t>(rank) ? rank : axis_of(attributes, at, rank);
    return around(first, rank - first, rank);
  }
  if (op == "Concat" || op == "Split") return around(axis(op == "Split" ? 0 : 1), 1, rank);
  if (op == "Gemm" && operand == 0 && attributes.integer("transA", 0) != 0 && rank == 2) return "cn";
  if (op == "MatMul" && operand == 0 && rank > 2) return roles_of_factor(rank, constant_extents(node.inputs.back()));
  if (op == "LSTM" && operand == 0 && rank == 3) return attributes.integer("layout", 0) != 0 ? "nhc" : "hnc";
  if (op == "Gather" && operand == 1) return rank == 1 ? "n" : around(1, 0, rank);
  if (op == "Transpose") {
    const std::vector<std::size_t> order = permutation(attributes, rank);
    const Roles after = roles_of(node.outputs.empty() ? "" : node.outputs.front(), rank, depth + 1);
    const Roles wanted = after.empty() ? usual_roles(rank) : after;
    Roles roles(rank, ' ');
    for (std::size_t i = 0; i < rank; ++i) roles[order[i]] = wanted[i];
    return roles;
  }
  if ((op == "Add" || op == "Sub" || op == "Mul" || op == "Div") && node.inputs.size() == 2) {
    // What a constant has a number for is to be channels, unless it is the second axis alone anyway.
    std::optional<Extents> its = constant_extents(node.inputs[1 - operand % 2]);
    if (its) its = aligned(attributes, opset_, *its, rank);
    std::vector<std::size_t> numbered;
    for (std::size_t i = 0; its && its->size() <= rank && i < its->size(); ++i) {
      if ((*its)[i] != 1) numbered.push_back(i + rank - its->size());
    }
    if (!numbered.empty() && numbered != std::vector<std::size_t>{1}) {
      return around(numbered.front(), numbered.back() - numbered.front() + 1, rank);
    }
  }
  const bool elementwise = op == "Identity" || op == "Relu" || op == "Sigmoid" || op == "Tanh" || op == "Dropout" ||
                           op == "Add" || op == "Sum" || op == "Cast" || op == "Clip" || op == "HardSigmoid" ||
                           op == "HardSwish";
  if (elementwise && !node.outputs.empty()) return roles_of(node.outputs.front(), rank, depth + 1);
  const bool over_slices = op == "Conv" || op == "ConvTranspose" || op == "MaxPool" || op == "AveragePool";
  if ((over_slices || op == "GlobalAveragePool" || op == "GlobalMaxPool") && rank == 5) return "ncchw";
  if (op == "BatchNormalization" && rank == 5 && !node.outputs.empty()) {
    const Roles after = roles_of(node.outputs.front(), rank, depth + 1);
    if (!after.empty()) return after;
  }
  return over_slices || op == "BatchNormalization" ? usual_roles(rank) : "";
}

}  // namespace lamina::onnx
