// The context of a node: the functions of the operators query it, and give their results to it.

#include "node_context.h"

#include <algorithm>
#include <cmath>

#include "lib/core/text/utf8.h"

namespace lamina::onnx {

bool is_about(double number, double exact) { return std::abs(number - exact) <= 1e-6 * std::abs(exact); }

NodeContext::NodeContext(Importer& importer, std::size_t index)
    : Attributes(importer.nodes_[index], importer.name_), importer_(&importer), index_(index), output_of_(index) {}

std::size_t NodeContext::inputs() const {
  std::size_t count = node().inputs.size();
  while (count > 0 && node().inputs[count - 1].empty()) --count;
  return count;
}

bool NodeContext::has(std::size_t input) const { return input < inputs() && !node().inputs[input].empty(); }

bool NodeContext::is_constant(std::size_t input) const {
  const Importer::Known* found = has(input) ? importer_->known(node().inputs[input]) : nullptr;
  return found != nullptr && !found->is_computed();
}

bool NodeContext::all_constant() const {
  for (std::size_t i = 0; i < inputs(); ++i)
    if (has(i) && !is_constant(i)) return false;
  return true;
}

const Constant& NodeContext::constant(std::size_t input, std::string_view what) const {
  if (!has(input)) invalid("lacks its input " + std::to_string(input) + ", " + std::string(what));
  const Constant* constant = importer_->constant_of(node().inputs[input]);
  if (constant == nullptr && is_constant(input)) throw Unknown{};
  if (constant == nullptr)
    throw Refusal{std::string(what) + " is computed when the network runs: only a parameter or a constant is read"};
  return *constant;
}

const DynamicValue& NodeContext::dynamic(std::size_t input, unsigned kept) const {
  if (!has(input)) invalid("lacks its input " + std::to_string(input));
  const std::string_view name = node().inputs[input];
  Importer::Known* found = importer_->known(name);
  auto* value = found == nullptr ? nullptr : std::get_if<DynamicValue>(&found->is);
  if (is_constant(input)) throw Refusal{"its input " + in_quotes(name) + " is a constant: only a computed one is read"};
  if (value == nullptr) throw Unknown{};
  importer_->materialise(*value, kept);
  return *value;
}

Extents NodeContext::extents(std::size_t input) const {
  return is_constant(input) ? constant(input, "its input").extents : onnx::extents(pending(input).view);
}

double NodeContext::number(std::size_t input, std::string_view what) const {
  const Constant& its = constant(input, what);
  if (its.count() != 1) invalid("has " + onnx::text(its.extents) + " as " + std::string(what));
  return its.at(0);
}

std::optional<Extents> NodeContext::list(const char* name, std::size_t input) const {
  std::optional<Extents> found = integers(name);
  if (!found && has(input)) found = list(constant(input, std::string("its ") + name));
  return found;
}

bool NodeContext::wanted(std::size_t output) const {
  const auto& outputs = node().outputs;
  if (output >= outputs.size() || outputs[output].empty()) return false;
  return outputs[output] == importer_->output_ || importer_->inlined_.contains(outputs[output]) ||
         !importer_->nodes_.readers(outputs[output]).empty();
}

void NodeContext::only_output(std::string_view instead) const {
  for (std::size_t i = 1; i < node().outputs.size(); ++i) {
    if (wanted(i))
      throw Refusal{"its output " + in_quotes(node().outputs[i]) +
                    " is used, which is not supported: " + std::string(instead)};
  }
}

void NodeContext::set(std::size_t output, Importer::Known its) {
  const std::string_view name = importer_->nodes_[output_of_].outputs[output];
  importer_->values_[name] = std::move(its);
  if (importer_->is_unsure(node())) importer_->unsure_.insert(name);
}

Value NodeContext::result_of(const Op& op, const DynamicValue& x) {
  const Value y = append(op, {x.value}, name());
  result({.value = y, .view = x.view, .type = x.type});
  return y;
}

Value NodeContext::append(const Op& op, const std::vector<Value>& inputs, const std::string& name) {
  return apply(op, inputs, importer_->free_name(name));
}

Value NodeContext::append_once(const Op& op, Value x, const std::string& name) {
  constexpr std::size_t most = 16;  // a hostile file may have an op for each node
  std::vector<Value>& made = importer_->once_[x.id()];
  for (const Value y : made)
    if (importer_->result_.graph.nodes()[static_cast<std::size_t>(y.id())].op == op) return y;
  const Value y = append(op, {x}, name);
  if (made.size() < most) made.push_back(y);
  return y;
}

std::vector<double> NodeContext::numbers(const Constant& constant) const {
  consume_budget(constant.count());
  if (!constant.uniform) return constant.values;
  return std::vector<double>(static_cast<std::size_t>(constant.count()), constant.values[0]);
}

void NodeContext::weights(Value value, std::string_view parameter, Extents extents, std::vector<double> values,
                          ElementType type, const WeightSource& source) {
  OnnxModel& model = importer_->result_;
  const Node& node = model.graph.nodes()[static_cast<std::size_t>(value.id())];
  const DType dtype = floating(type).value_or(DType::f32);
  const std::string name = node.name + "." + std::string(parameter);
  model.weights[name] = {.dtype = dtype, .extents = std::move(extents), .values = std::move(values)};
  const auto names = parameter_names(node.op);
  const auto k = static_cast<std::size_t>(std::ranges::find(names, parameter) - names.begin());
  const Constant* const constant = source.value.empty() ? nullptr : importer_->constant_of(source.value);
  const bool trains = constant != nullptr && constant->origin != Origin::number;
  if (k < names.size() && !trains) return model.graph.fix(name);
  if (source.value.empty()) return;
  const std::string_view origin = constant->source.empty() ? source.value : constant->source;
  const std::string earlier = importer_->shared_.add({.name = name,
                                                      .parameter = parameter,
                                                      .shape = k < names.size() ? node.params[k] : node.state.front(),
                                                      .source = source,
                                                      .origin = origin,
                                                      .traced = Attributes::node().traced,
                                                      .whole = importer_->constant_of(origin)->count()},
                                                     model.weights);
  if (earlier.empty()) return;
  model.graph.share(name, earlier);
  model.weights.erase(name);
}

bool NodeContext::learns(const Constant& constant, const DynamicValue& x) const {
  return constant.origin == Origin::parameter && is_floating(x.type) &&
         (origins_are_stated() || importer_->kinds_.is_given(constant.source) ||
          importer_->has_parameters(x.value.id()));
}

void NodeContext::note(std::string_view initializer, bool trains) {
  (trains ? importer_->learned_ : importer_->left_as_they_are_).insert(initializer);
}

std::optional<std::size_t> NodeContext::only_reader(std::size_t node) const {
  const std::vector<std::string_view>& outputs = importer_->nodes_[node].outputs;
  if (outputs.empty() || outputs.front() == importer_->output_) return std::nullopt;
  const std::vector<std::size_t>& readers = importer_->nodes_.readers(outputs.front());
  if (readers.size() != 1 || !importer_->nodes_.is_open(readers.front())) return std::nullopt;
  const NodeMessage& next = importer_->nodes_[readers.front()];
  return next.outputs.size() == 1 && next.is_of_onnx() ? std::optional(readers.front()) : std::nullopt;
}

const NodeMessage* NodeContext::only_reader() const {
  const std::optional<std::size_t> next = only_reader(output_of_);
  return next && importer_->nodes_[*next].inputs.size() == 2 ? &importer_->nodes_[*next] : nullptr;
}

std::optional<NodeContext::Arithmetic> NodeContext::next_arithmetic() const {
  const NodeMessage* next = only_reader();
  if (next == nullptr || next->inputs[0] == next->inputs[1]) return std::nullopt;
  const std::string_view op = next->op_type;
  if (op != "Add" && op != "Sub" && op != "Mul" && op != "Div") return std::nullopt;
  const std::size_t at = next->inputs[0] == importer_->nodes_[output_of_].outputs.front() ? 1 : 0;
  const Constant* constant = importer_->constant_of(next->inputs[at]);
  return constant == nullptr ? std::nullopt : std::optional(Arithmetic{{*next, importer_->name_}, constant, at});
}

std::optional<std::int64_t> NodeContext::next_index(std::size_t along, std::size_t rank) const {
  const NodeMessage* next = only_reader();
  if (next == nullptr || next->op_type != "Gather") return std::nullopt;
  const Attributes gather(*next, importer_->name_);
  const Constant* index = importer_->constant_of(next->inputs[1]);
  if (index == nullptr || !index->extents.empty()) return std::nullopt;
  if (axis_of(gather, gather.integer("axis", 0), rank) != along) return std::nullopt;
  return to_integer(index->at(0));
}

void NodeContext::fuse_next() {
  output_of_ = importer_->nodes_.readers(importer_->nodes_[output_of_].outputs.front()).front();
  importer_->nodes_.finish(output_of_);
}

Bias NodeContext::fuse_bias(const Extents& result, std::size_t channels) {
  const std::optional<Arithmetic> next = next_arithmetic();
  if (!next || next->node.node().op_type != "Add" || next->constant->extents.size() > result.size()) return {};
  const Extents its = aligned(next->node, opset(), next->constant->extents, result.size());
  const std::size_t missing = result.size() - its.size();
  if (channels < missing || its[channels - missing] != result[channels]) return {};
  if (next->constant->count() != result[channels]) return {};
  fuse_next();
  return {numbers(*next->constant), {next->node.node().inputs[next->at]}};
}

bool NodeContext::fuse_chain(std::initializer_list<Link> links) {
  std::vector<std::size_t> chain = {output_of_}, sides;
  for (const Link& link : links) {
    const std::optional<std::size_t> next = only_reader(chain.back());
    if (!next || importer_->nodes_[*next].op_type != link.op_type) return false;
    const std::string_view result = importer_->nodes_[chain.back()].outputs.front();
    std::vector<std::string_view> others = importer_->nodes_[*next].inputs, wanted;
    if (link.op_type == "Where" && others.back() != result) return false;
    std::erase(others, result);
    if (link.side != nullptr) {
      if (only_reader(link.side->index_) != next) return false;
      sides.push_back(link.side->index_);
      wanted.push_back(link.side->node().outputs.front());
    }
    if (!link.with.empty()) wanted.push_back(link.with);
    if (link.number) {
      const Constant* const constant = others.empty() ? nullptr : importer_->constant_of(others.front());
      if (constant == nullptr || constant->count() != 1 || !is_about(constant->at(0), *link.number)) return false;
      wanted.push_back(others.front());
    }
    if (others != wanted) return false;
    chain.push_back(*next);
  }
  for (const std::size_t node : chain) importer_->nodes_.finish(node);
  for (const std::size_t node : sides) importer_->nodes_.finish(node);
  output_of_ = chain.back();
  name_ = Attributes(importer_->nodes_[output_of_], importer_->name_).name();
  return true;
}

std::vector<NodeContext> NodeContext::siblings(std::size_t input) const {
  std::vector<NodeContext> found;
  for (const std::size_t node : importer_->nodes_.readers(input_name(input)))
    if (node != index_ && importer_->nodes_.is_open(node) && importer_->nodes_[node].is_of_onnx())
      found.emplace_back(*importer_, node);
  return found;
}

std::shared_ptr<PendingRecurrent> NodeContext::recurrent_of(const DynamicValue& x) const {
  if (x.recurrent) return x.steps == Steps::all ? x.recurrent : nullptr;
  const auto found = importer_->recurrents_.find(x.value.id());
  return found == importer_->recurrents_.end() || x.is_pending() ? nullptr : found->second;
}

void Importer::materialise(DynamicValue& x, unsigned kept) {
  if (is_expanded(x.view) && (kept & keep::expanded) == 0)
    throw Refusal{"it reads a value that an Expand repeats: only arithmetic with another computed value can"};
  if (x.squares && (kept & keep::squares) == 0) {
    const Squares& s = *x.squares;
    if (s.before + s.after + s.size > 0) throw Refusal{"it works on a part of nn.LocalResponseNorm"};
    x.value = apply(Pointwise{lamina::Function::pow, 2}, {x.value}, free_name(s.name));
    x.squares.reset();
  }
  if (x.padding && (kept & keep::padding) == 0) materialise_padding(x);
  if (x.norm && (kept & keep::norm) == 0) {
    if (!x.norm->made) x.norm->made = apply(x.norm->op, {x.value}, free_name(x.norm->name));
    x.value = *x.norm->made;
    x.norm.reset();
  }
  if (x.recurrent && (kept & keep::recurrent) == 0) {
    auto made = x.recurrent->made.find(x.steps);
    if (made == x.recurrent->made.end()) made = x.recurrent->made.emplace(x.steps, x.recurrent->append(x.steps)).first;
    x.value = made->second;
    if (x.steps == Steps::all) recurrents_[x.value.id()] = x.recurrent;
    x.recurrent.reset();
  }
}

void Importer::materialise_padding(DynamicValue& x) {
  x.value = apply(x.padding->op, {x.value}, free_name(x.padding->name));
  const Shape after = x.value.shape();
  Extents all = extents(x.view);
  const Extents padded = {after.n, after.c, after.h, after.w};
  std::copy_n(padded.begin(), all.size(), all.begin());
  x.view = layout_of(all, usual_labels(all.size())).view;
  x.padding.reset();
}

}  // namespace lamina::onnx
