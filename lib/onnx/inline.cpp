// Graphs inside of nodes: the branch of an If whose condition is known takes the place of the node.

#include "importer.h"

namespace lamina::onnx {

void Importer::inline_graph(std::size_t index, GraphMessage graph) {
  const Attributes attributes(nodes_[index], name_);
  const std::vector<std::string_view>& outputs = nodes_[index].outputs;
  if (!graph.inputs.empty() || graph.outputs.size() != outputs.size())
    attributes.invalid("has a branch with inputs, or with another number of outputs");
  const GraphMessage& own = graphs_.emplace_back(std::move(graph));  // values_ refers to its initializers
  const std::size_t first = nodes_.size();
  std::set<std::string_view> wanted;
  for (const ValueMessage& output : own.outputs) wanted.insert(output.name);
  inlined_.insert(wanted.begin(), wanted.end());
  add_initializers(own);
  nodes_.add(own, std::move(wanted));
  import_nodes(first);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Known* found = known(own.outputs[i].name);
    if (found != nullptr && !outputs[i].empty()) values_[outputs[i]] = Known(*found);
    if (unsure_.contains(own.outputs[i].name)) unsure_.insert(outputs[i]);
  }
}

void NodeContext::inline_graph(std::string_view attribute) {
  std::optional<GraphMessage> graph = attributes_.value(attribute).graph;
  if (!graph) attributes_.invalid("lacks its " + std::string(attribute));
  importer_->inline_graph(index_, std::move(*graph));
}

}  // namespace lamina::onnx
