// The nodes of a file in order, and the readers of each value.

#include "nodes.h"

#include <algorithm>

#include "attributes.h"
#include "lamina/error.h"
#include "lib/core/text/utf8.h"

namespace lamina::onnx {

void Nodes::add(const GraphMessage& graph, std::set<std::string_view> wanted) {
  const std::size_t first = nodes_.size();
  for (const NodeMessage& node : graph.nodes) {
    const Attributes attributes(node, file_);
    if (node.op_type.empty()) attributes.invalid("has no operator");
    for (const std::string_view input : node.inputs) {
      if (!input.empty() && !made_.contains(input))
        attributes.invalid("reads " + in_quotes(input) + ", which no input, initializer or earlier node makes");
    }
    for (const std::string_view output : node.outputs) {
      if (!output.empty() && !made_.insert(output).second)
        attributes.invalid("makes " + in_quotes(output) + ", which is made already");
    }
    nodes_.push_back(&node);
  }
  live_.resize(nodes_.size(), 0);
  done_.resize(nodes_.size(), 0);
  for (std::size_t i = nodes_.size(); i-- > first;) {
    const auto is_wanted = [&](std::string_view output) { return !output.empty() && wanted.contains(output); };
    live_[i] = std::ranges::any_of(nodes_[i]->outputs, is_wanted);
    if (live_[i]) wanted.merge(reads(*nodes_[i]));
  }
  for (std::size_t i = first; i < nodes_.size(); ++i) {
    if (!live_[i]) continue;
    for (const std::string_view input : reads(*nodes_[i])) readers_[input].push_back(i);
  }
}

const std::vector<std::size_t>& Nodes::readers(std::string_view value) const {
  static const std::vector<std::size_t> none;
  const auto found = readers_.find(value);
  return found == readers_.end() ? none : found->second;
}

std::set<std::string_view> Nodes::reads(const NodeMessage& node, int depth) const {
  constexpr int deepest = 8;
  std::set<std::string_view> all(node.inputs.begin(), node.inputs.end());
  if (node.op_type == "If") {
    const Attributes attributes(node, file_);
    if (depth == deepest)
      throw Unsupported(attributes.where() + " is an If within " + std::to_string(deepest) + " others");
    for (const char* branch : {"then_branch", "else_branch"}) {
      const std::optional<GraphMessage> graph = attributes.value(branch).graph;
      if (!graph) continue;
      for (const NodeMessage& inner : graph->nodes) all.merge(reads(inner, depth + 1));
      for (const ValueMessage& output : graph->outputs) all.insert(output.name);
    }
  }
  all.erase("");
  return all;
}

}  // namespace lamina::onnx
