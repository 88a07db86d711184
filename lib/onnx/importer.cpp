// Imports a model: selects the nodes that the output needs, folds constants, then imports node by node.

#include "importer.h"

#include <algorithm>

#include "lamina/error.h"
#include "lib/core/text/utf8.h"
#include "node_context.h"

namespace lamina::onnx {
namespace {

constexpr std::int64_t oldest_opset = 6, newest_opset = 27;

/// A note if batch norms may have been folded, or nothing. Convolutions without bias count, too: exporters leave out a
/// folded bias of zeros.
std::vector<std::string> note_of_norms(const Graph& graph) {
  const auto is_conv = [](const Node& node) { return std::holds_alternative<Conv>(node.op); };
  const auto convolutions = std::ranges::count_if(graph.nodes(), is_conv);
  if (convolutions == 0 || std::ranges::any_of(graph.nodes(), is_norm, &Node::op)) return {};
  return {"no batch norm, but " + std::to_string(convolutions) + " convolution" + (convolutions == 1 ? "" : "s") +
          ": if the model has batch norms, the exporter folded them, and they neither train nor take time; "
          "docs/onnx.md shows the export that keeps them"};
}

/// A note on these initializers, or nothing if there are none.
std::vector<std::string> note_of(const std::set<std::string_view>& names, const std::string& what) {
  if (names.empty()) return {};
  const std::string others = names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "";
  return {what + ": " + in_quotes(*names.begin()) + others};
}

}  // namespace

Importer::Importer(const ModelMessage& model, const OnnxOptions& options, const std::filesystem::path& path)
    : model_(model),
      file_(*model.graph),
      nodes_(path.string()),
      options_(options),
      path_(path),
      name_(path.string()),
      refusals_(options.all_refusals),
      kinds_(model, options, name_),
      result_{.graph = Graph(to_utf8(path.stem().string())), .weights = {}, .inputs = {}, .output = {}, .opset = 0} {
  if (!model.opset) throw FileError(name_ + ": the file does not say its opset");
  opset_ = result_.opset = *model.opset;
  if (opset_ < oldest_opset || opset_ > newest_opset) {
    throw Unsupported(name_ + ": opset " + std::to_string(opset_) + "; those from " + std::to_string(oldest_opset) +
                      " to " + std::to_string(newest_opset) + " are read. ONNX's version_converter can change it");
  }
}

OnnxModel Importer::run() {
  auto result = run_or_fold();
  if (auto* model = std::get_if<OnnxModel>(&result)) return std::move(*model);
  refusals_.add("", "", "its output " + in_quotes(output_) + " is a constant: there is nothing to compute");
  refuse();
}

std::variant<OnnxModel, Constant> Importer::run_or_fold() {
  choose_output();
  read_file({output_});
  if (!nodes_.has(output_)) throw FileError(in_file(output_) + " is an output, but no node makes it");
  fold_constants();
  add_inputs();
  import_nodes(0);

  Known* end = known(output_);
  auto* dynamic = end == nullptr ? nullptr : std::get_if<DynamicValue>(&end->is);
  const auto add = [&](const std::string& why) { refusals_.add("", "", "its output " + in_quotes(output_) + why); };
  if (dynamic != nullptr && !unsure_.contains(output_)) {
    try {
      materialise(*dynamic, 0);
    } catch (const Refusal& refusal) {
      add(": " + refusal.why);
    } catch (const ShapeError& error) {
      add(std::string(": ") + error.what());
    }
  }
  if (refusals_.empty() && dynamic == nullptr) {
    if (const Constant* constant = constant_of(output_)) return *constant;
    add(" is not made by any node that is read");
  }
  if (!refusals_.empty()) refuse();
  const std::string node = result_.graph.nodes()[static_cast<std::size_t>(dynamic->value.id())].name;
  result_.replaced_batch = fixed_batch_;
  for (const auto& notes :
       {note_of_norms(result_.graph), shared_.notes(),
        note_of(learned_, "trains without being stated a parameter (OnnxOptions::trains can say otherwise)"),
        note_of(left_as_they_are_, "may be a parameter, and does not train (docs/onnx.md says when)")})
    result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
  result_.output = {
      .name = std::string(output_), .extents = extents(dynamic->view), .node = node, .axes = dynamic->view};
  return std::move(result_);
}

void Importer::refuse() const {
  if (fixed_batch_ > 0) {  // the extents in the file are those of its own batch
    OnnxOptions own = options_;
    own.batch = 0;
    Importer(model_, own, path_).run();
  }
  throw Unsupported(name_ + ": " + refusals_.text(opset_));
}

std::string Importer::in_file(std::string_view value) const { return name_ + ": " + in_quotes(value); }

void Importer::choose_output() {
  if (file_.outputs.empty()) throw FileError(name_ + ": the graph has no output");
  std::string all;
  for (const ValueMessage& output : file_.outputs) {
    if (output.name == options_.output) output_ = output.name;
    (all += all.empty() ? "" : ", ") += in_quotes(output.name);
  }
  if (!options_.output.empty() && output_.empty()) {
    throw UsageError(in_file(options_.output) + " is not an output; valid names: " + all);
  }
  if (options_.output.empty() && file_.outputs.size() > 1) {
    throw UsageError(name_ + ": the graph has the outputs " + all + "; a graph of this library has one: name one in " +
                     "OnnxOptions::output");
  }
  if (output_.empty()) output_ = file_.outputs.front().name;
}

/// Reads initializers, the options' constants and the other inputs, and adds the nodes that the wanted values need.
void Importer::read_file(const std::set<std::string_view>& wanted) {
  if (file_.sparse) refusals_.add("", "", "sparse initializers: store them as dense ones");
  add_initializers(file_);
  std::set<std::string> used;
  for (const ValueMessage& input : file_.inputs) {
    const auto given = options_.constants.find(std::string(input.name));
    if (given != options_.constants.end()) {
      used.insert(given->first);
      Constant constant{.type = input.type,
                        .extents = given->second.extents,
                        .values = given->second.values,
                        .origin = Origin::tensor,
                        .source = input.name};
      if (element_count(constant.extents) != static_cast<std::int64_t>(constant.values.size()))
        throw UsageError("the constant " + in_quotes(input.name) + " has " + std::to_string(constant.values.size()) +
                         " values, but its shape is " + text(constant.extents));
      values_[input.name] = {std::make_shared<const Constant>(std::move(constant))};
    } else if (!values_.contains(input.name) && !inputs_.emplace(input.name, &input).second) {
      throw FileError(in_file(input.name) + " is a duplicate input");
    }
    nodes_.make(input.name);
  }
  for (const auto& [name, tensor] : options_.constants) {
    if (!used.contains(name)) throw UsageError(in_file(name) + " was given as a constant, and is not an input");
  }
  nodes_.add(file_, wanted);
}

void Importer::add_initializers(const GraphMessage& graph) {
  for (const TensorMessage& tensor : graph.initializers) {
    if (!nodes_.make(tensor.name)) throw FileError(in_file(tensor.name) + " is a duplicate initializer");
    values_[tensor.name] = {&tensor};
  }
}

Importer::Known* Importer::known(std::string_view value) {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

const Constant* Importer::constant_of(std::string_view value) {
  Known* found = known(value);
  if (found == nullptr) return nullptr;
  if (const auto* tensor = std::get_if<const TensorMessage*>(&found->is)) {
    const TensorMessage& message = **tensor;
    Constant read = read_constant(message, path_, in_file(value));
    computed_ -= stored_numbers(message, path_, external_bytes_[message.location]);
    read.origin = kinds_.of(value);
    const std::string_view source = kinds_.source_of(value);
    read.source = values_.contains(source) && !inputs_.contains(source) ? source : value;
    found->is = std::make_shared<const Constant>(std::move(read));
  }
  const auto* constant = std::get_if<std::shared_ptr<const Constant>>(&found->is);
  return constant == nullptr ? nullptr : constant->get();
}

void Importer::consume_budget(std::int64_t computed, const std::string& what) {
  if (computed > options_.most_computed_numbers - computed_) {
    throw FileError(what + " computes " + std::to_string(computed) + " numbers, " + std::to_string(computed_) +
                    " before it; the limit is " + std::to_string(options_.most_computed_numbers) +
                    " (OnnxOptions::most_computed_numbers)");
  }
  computed_ += computed;
}

/// Folds nodes on constants alone, before any shape is known: layout inference reads constants of later nodes.
void Importer::fold_constants() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeMessage& node = nodes_[i];
    const auto unread = [&](std::string_view output) { return nodes_.readers(output).empty() && output != output_; };
    if (!nodes_.is_open(i) || !node.is_of_onnx() || find_folding(node.op_type) == nullptr || node.outputs.empty() ||
        !std::all_of(node.outputs.begin() + 1, node.outputs.end(), unread))
      continue;
    NodeContext context(*this, i);
    if (!context.all_constant()) continue;
    try {
      context.fold();
      nodes_.finish(i);
    } catch (const Refusal&) {
      // import_node() reports it, in the order of the nodes.
    }
  }
}

void Importer::add_inputs() {
  check_extents();
  for (const auto& given : options_.batch_axes)
    if (std::ranges::find(file_.inputs, given.first, &ValueMessage::name) == file_.inputs.end())
      throw UsageError(in_file(given.first) + " is not an input, although OnnxOptions::batch_axes names it");
  bool has_batch = options_.batch <= 1;
  for (const ValueMessage& input : file_.inputs) {
    if (!is_read(input)) continue;
    has_batch = has_batch || batch_axis(input);
    const Extents extents = extents_of(input);
    const GraphLayout layout = layout_of(extents, labels_of(input.name, extents.size(), 0));
    try {
      const Value value = result_.graph.input(layout.shape, free_name(std::string(input.name)));
      values_[input.name] = {DynamicValue{.value = value, .view = layout.view, .type = input.type}};
      result_.inputs.push_back({.name = std::string(input.name),
                                .extents = extents,
                                .node = result_.graph.nodes()[static_cast<std::size_t>(value.id())].name,
                                .axes = layout.view});
    } catch (const ShapeError& error) {
      throw FileError(in_file(input.name) + " is an input of " + text(extents) + ": " + error.what());
    }
  }
  if (!has_batch)
    throw UsageError(name_ + " has no batch axis, so OnnxOptions::batch has nothing to set; if an axis is the batch, " +
                     "name it in OnnxOptions::batch_axes");
}

bool Importer::has_parameters(int node) {
  const std::vector<Node>& nodes = result_.graph.nodes();
  for (std::size_t i = has_parameters_.size(); i < nodes.size(); ++i) {
    const auto has = [&](int input) { return has_parameters_[static_cast<std::size_t>(input)] != 0; };
    has_parameters_.push_back(!nodes[i].params.empty() ||
                              std::any_of(nodes[i].inputs.begin(), nodes[i].inputs.end(), has));
  }
  return has_parameters_[static_cast<std::size_t>(node)] != 0;
}

std::string Importer::free_name(const std::string& its) {
  const std::string name = to_utf8(its);
  std::string free = name;
  int& number = repeats_[name];
  while (result_.graph.find(free) >= 0) free = name + "#" + std::to_string(++number + 1);
  return free;
}

void Importer::import_nodes(std::size_t first) {
  const std::size_t end = nodes_.size();  // branches append their nodes later
  for (std::size_t i = first; i < end; ++i) {
    if (nodes_.is_open(i)) import_node(i);
  }
}

void Importer::import_node(std::size_t index) {
  const NodeMessage& node = nodes_[index];
  NodeContext context(*this, index);
  const bool unsure = is_unsure(node);
  const auto report = [&](const std::string& why, bool is_certain) {
    refusals_.add(node.op_type, context.Attributes::name(), is_certain ? why : "");
  };
  try {
    if (!node.is_of_onnx())
      throw Refusal{"the operators of the domain " + in_quotes(node.domain) + " are unknown here: use ONNX's own"};
    const OperatorRow* row = find_operator(node.op_type);
    if (node.op_type != "ReverseSequence" && node.op_type.find("Sequence") != std::string_view::npos)
      throw Refusal{"sequences are not supported: PyTorch with dynamo=False writes Split in their place"};
    if (row == nullptr && find_folding(node.op_type) == nullptr) throw Refusal{"this operator is not supported"};
    if (context.all_constant() && (row == nullptr || row->folds)) return context.fold();
    if (row == nullptr) throw Refusal{"it works on computed values: it is read on constants and extents alone"};
    return row->import(context);
  } catch (const Refusal& refusal) {
    report(refusal.why, !unsure || !refusal.of_order);
  } catch (const ShapeError& error) {
    report(error.what(), !unsure);
  } catch (const FileError& error) {
    if (!unsure) throw;
    report(error.what(), false);
  } catch (const Unknown&) {
    if (!context.all_constant()) report("", false);
  }
  stand_in(node);
  if (context.last() != index) stand_in(nodes_[context.last()]);  // a later node that was fused into this one
}

/// Replaces an If whose condition is known by its branch.
void Importer::inline_graph(std::size_t index, std::string_view branch) {
  const Attributes attributes(nodes_[index], name_);
  std::optional<GraphMessage> graph = attributes.value(branch).graph;
  if (!graph) attributes.invalid("lacks its " + std::string(branch));
  const std::vector<std::string_view>& outputs = nodes_[index].outputs;
  if (!graph->inputs.empty() || graph->outputs.size() != outputs.size())
    attributes.invalid("has a branch with inputs, or with another number of outputs");
  const GraphMessage& own = graphs_.emplace_back(*std::move(graph));  // values_ refers to its initializers
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

bool Importer::is_unsure(const NodeMessage& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](std::string_view input) { return unsure_.contains(input); });
}

}  // namespace lamina::onnx
