// BatchNormalization, group and layer norms, softmaxes, Dropout.

#include <algorithm>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

/// Whether a BatchNormalization normalises by the batch. Opsets 7 to 13 state it by further outputs.
bool is_by_batch(const NodeContext& context) {
  const NodeMessage& node = context.node();
  if (context.opset() >= 14) return context.integer("training_mode", 0) != 0;
  if (context.opset() < 7) return context.integer("is_test", 0) == 0;
  return std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                     [](std::string_view output) { return !output.empty(); });
}

constexpr const char* operand_names[] = {"its scale", "its bias", "its mean", "its variance"};

/// ONNX's momentum is the part of the running statistics that is kept, ours is the part that is new. In training ONNX's
/// running variance takes the biased variance of the batch, ours the unbiased one.
void import_batch_norm(NodeContext& context) {
  DynamicValue x = context.dynamic(0);
  Shape shape = x.value.shape();
  if (x.view.size() < 2) refuse_input(x, "whose channels are not its second axis");
  if (x.view[1] != axis(shape.c, shape.plane())) {
    x = in_order(context, x, usual_labels(x.view.size()), context.name() + ".x");
    shape = x.value.shape();
  }
  if (is_by_batch(context) && !context.for_training()) {
    throw Refusal{
        "it normalises by the batch also in inference: export net.eval(), or read it with OnnxOptions::training"};
  }
  if (context.opset() < 9 && context.integer("spatial", 1) == 0)
    throw Refusal{"it normalises each pixel (spatial 0): use one scale for each channel, as nn.BatchNorm2d has"};
  context.only_output("export net.eval()");
  const Extents result = extents(x.view);
  const std::int64_t channels = result[1];
  std::vector<double> numbers[4];
  for (std::size_t i = 0; i < 4; ++i) numbers[i] = numbers_of(context, i + 1, operand_names[i], channels);
  const ElementType type = context.constant(1).type;
  const double momentum = std::clamp(as_written(static_cast<float>(1 - context.number("momentum", 0.9))), 0.0, 1.0);
  const Value y = context.result_of(BatchNorm{.epsilon = context.number("epsilon", 1e-5), .momentum = momentum}, x);
  constexpr const char* parts[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i)
    context.weights(y, parts[i], {channels}, std::move(numbers[i]), type, {context.input_name(i + 1)});
}

/// The axes from `first` on as one axis. No axis if they do not follow each other in memory.
View joined(const View& view, std::size_t first) {
  const View rest(view.begin() + static_cast<std::ptrdiff_t>(first), view.end());
  return reshaped(rest, {*element_count(extents(rest))}).value_or(View{});
}

/// Appends a norm with its scale and shift. Each has `count` numbers, one for each of `count` groups of channels.
template <class Norm>
void append_norm(NodeContext& context, Norm op, const DynamicValue& x, std::int64_t count) {
  const std::int64_t channels = x.value.shape().c;
  op.epsilon = context.number("epsilon", 1e-5);
  op.affine = false;
  std::vector<double> numbers[2] = {{}, std::vector<double>(static_cast<std::size_t>(channels), 0)};
  constexpr const char* parts[] = {"weight", "bias"};
  WeightSource sources[2];
  for (std::size_t i = 0; i < 2; ++i) {
    if (i == 1 && !context.has(2)) continue;
    numbers[i] = numbers_of(context, i + 1, operand_names[i], count);
    op.affine =
        op.affine || context.constant(i + 1).origin != Origin::number || !all_are(numbers[i], i == 0 ? 1.0 : 0.0);
    if (count == channels) {
      sources[i].value = context.input_name(i + 1);
      continue;
    }
    context.consume_budget(channels);
    std::vector<double> each;
    for (std::int64_t c = 0; c < channels; ++c)
      each.push_back(numbers[i][static_cast<std::size_t>(c / (channels / count))]);
    numbers[i] = std::move(each);
  }
  if constexpr (std::is_same_v<Norm, GroupNorm>) {
    if (!op.affine) {
      DynamicValue y = x;
      y.norm = std::make_shared<PendingNorm>(PendingNorm{op, context.name()});
      return context.result(std::move(y));
    }
  }
  const ElementType type = context.constant(1).type;
  const Value y = context.result_of(op, x);
  for (std::size_t i = 0; i < 2 && op.affine; ++i)
    context.weights(y, parts[i], {channels}, std::move(numbers[i]), type, sources[i]);
}

/// An InstanceNormalization is a group norm whose groups are its second axis. Exporters write GroupNorm in this form.
/// Before opset 21 a GroupNormalization has a scale and a shift for each group; these do not train.
void import_group_norm(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const Shape shape = x.value.shape();
  const bool by_instance = context.node().op_type == "InstanceNormalization";
  const std::int64_t second = x.view.size() < 2 ? 0 : extent(x.view[1]);
  const std::int64_t groups = by_instance ? second : context.integer("num_groups", 0);
  if (second == 0 || shape.c % second != 0 || (!by_instance && second != shape.c) ||
      x.view[0] != axis(shape.n, shape.image()) || x.view[1] != axis(second, shape.image() / second))
    refuse_input(x, "whose second axis is not its channels or groups of them");
  const GroupNorm op{.groups = narrow(context, groups, 1, "number of groups")};
  append_norm(context, op, x, by_instance || context.opset() < 21 ? groups : second);
}

void import_layer_norm(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const Shape shape = x.value.shape();
  const std::size_t first = axis_of(context, context.integer("axis", -1), x.view.size());
  context.only_output("use the normalised value alone");
  if (joined(x.view, first) == View{axis(shape.c, shape.plane())}) return append_norm(context, LayerNorm{}, x, shape.c);
  if (first + 1 != x.view.size())
    refuse_input(x, "whose channels are not its last axis: only a layer norm over the channels is read");
  const DynamicValue y = in_order(context, x, channels_last(x.view.size()), context.name() + ".x");
  append_norm(context, LayerNorm{}, y, y.value.shape().c);
}

/// Before opset 13 a Softmax is over all axes from `axis` on, since then along one axis.
void import_softmax(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const bool from_axis_on = context.opset() < 13;
  const std::int64_t at = context.integer("axis", from_axis_on ? 1 : -1);
  std::vector<char> over(x.view.size(), 0);
  if (!from_axis_on || at != std::ssize(over)) {
    const std::size_t first = axis_of(context, at, over.size());
    std::fill(over.begin() + static_cast<std::ptrdiff_t>(first),
              from_axis_on ? over.end() : over.begin() + static_cast<std::ptrdiff_t>(first) + 1, 1);
  }
  const WholeAxes its = whole_axes(context, x, over, true);
  const lamina::Axis along = its.channels ? lamina::Axis::channel : its.rows ? lamina::Axis::row : lamina::Axis::column;
  context.result_of(Softmax{.axis = along, .log = context.node().op_type == "LogSoftmax"}, its.x);
}

void import_dropout(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  double rate = context.number("ratio", 0.5);
  if (context.has(1)) rate = as_written(static_cast<float>(context.number(1, "its ratio")));
  bool training = context.opset() < 7 && context.integer("is_test", 0) == 0;
  if (context.has(2)) {
    const Constant& mode = context.constant(2, "its training_mode");
    training = mode.count() == 1 && mode.at(0) != 0;
  }
  const bool drops = training && rate != 0;
  if (drops && !context.for_training())
    throw Refusal{"it drops also in inference: export net.eval(), or read it with OnnxOptions::training"};
  if (drops) context.only_output("use its first output alone, and not the mask");
  if (context.wanted(1)) {  // the mask: nothing is dropped
    context.consume_budget(1);
    const ElementType type = context.opset() < 10 ? x.type : ElementType::boolean;
    context.result(Constant{.type = type, .extents = extents(x.view), .values = {1}, .uniform = true}, 1);
  }
  if (!(rate >= 0 && rate < 1)) throw Refusal{"its ratio is " + std::to_string(rate) + ": use one from 0 to below 1"};
  context.result_of(Dropout{.rate = rate}, x);
}

}  // namespace

Operators normalisation_operators() {
  return {{{"BatchNormalization"}, import_batch_norm},
          {{"Dropout"}, import_dropout},
          {{"GroupNormalization", "InstanceNormalization"}, import_group_norm},
          {{"LayerNormalization"}, import_layer_norm},
          {{"LogSoftmax", "Softmax"}, import_softmax}};
}

}  // namespace lamina::onnx
