// Functions that the operators share: the required order of axes, and numbers in range. The table of all operators.

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "lib/onnx/operators.h"

namespace lamina::onnx {

void refuse_order(const std::string& why) {
  throw Refusal{why + ": a permute or view before it would have to move numbers", true};
}

void refuse_input(const DynamicValue& x, const std::string& why) {
  refuse_order("its input of " + text(extents(x.view)) + " is kept as " + to_string(x.value.shape()) + ", " + why);
}

DynamicValue in_order(NodeContext& context, const DynamicValue& x, const AxisLabels& labels, const std::string& name) {
  const Shape shape = x.value.shape();
  const auto [wanted, view] = layout_of(extents(x.view), labels);
  if (view == x.view && wanted == shape) return x;
  if (is_expanded(x.view)) refuse_input(x, "and an Expand repeats it");
  View images, others;
  for (const char label : std::string_view("nchw"))
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == label) (label == 'n' ? images : others).push_back(x.view[i]);
  if (images != View{axis(shape.n, shape.image())}) refuse_input(x, "and its images are not one axis");
  const Axis order = reshaped(others, {shape.image()}).value_or(View{{}}).front();
  Axis sorted = order;
  std::ranges::sort(sorted, std::greater{}, &OnnxFactor::stride);
  Reorder op{{}, {}, wanted.c, {wanted.h, wanted.w}};
  for (const OnnxFactor& factor : sorted) op.extents.push_back(static_cast<int>(factor.extent));
  for (const OnnxFactor& factor : order)
    op.order.push_back(static_cast<int>(std::ranges::find(sorted, factor) - sorted.begin()));
  return {.value = context.append_once(op, x.value, name), .view = view, .type = x.type};
}

Value as_image(NodeContext& context, const DynamicValue& x) {
  if (x.view.size() < 3 || x.view.size() > 4) refuse_input(x, "in another order or grouping");
  return in_order(context, x, usual_labels(x.view.size()), context.name() + ".x").value;
}

DynamicValue as_channels(NodeContext& context, const DynamicValue& x, const std::string& name) {
  const Shape shape = x.value.shape();
  if (shape.plane() == 1) return x;
  const int image = narrow(context, shape.image(), 1, "extent of an image");
  return {.value = context.append_once(Reorder{{image}, {0}, image, 1}, x.value, name), .view = x.view, .type = x.type};
}

AxisLabels channels_last(std::size_t rank) {
  const AxisLabels usual = usual_labels(rank);
  return rank < 2 ? usual : usual.substr(0, 1) + usual.substr(2) + "c";
}

WholeAxes whole_axes(NodeContext& context, const DynamicValue& x, const std::vector<char>& over, bool single) {
  const Shape s = x.value.shape();
  std::int64_t joined[] = {1, 1, 1};  // extents of `over` along the channels, rows and columns
  bool whole = true;
  for (std::size_t i = 0; i < over.size(); ++i) {
    const std::optional<Axis> parts = split(x.view[i], s);
    whole = whole && parts;
    for (const OnnxFactor& part : parts.value_or(Axis{})) {
      if (over[i] && part.stride >= s.image())
        throw Refusal{"it is over the images of a batch: only axes of each image are read"};
      if (over[i]) joined[part.stride >= s.plane() ? 0 : part.stride >= s.w ? 1 : 2] *= part.extent;
    }
  }
  const int all[] = {s.c, s.h, s.w};
  int count = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    whole = whole && (joined[k] == 1 || joined[k] == all[k]);
    count += joined[k] != 1;
  }
  if (whole && (!single || count == 1)) return {x, joined[0] != 1, joined[1] != 1, joined[2] != 1};
  const auto images = static_cast<std::size_t>(std::ranges::find(x.view, axis(s.n, s.image())) - x.view.begin());
  AxisLabels labels;
  for (std::size_t i = 0; i < over.size(); ++i) {
    const bool after = labels.find('h') != AxisLabels::npos;
    labels += i == images ? 'n' : over[i] ? 'h' : after ? 'w' : 'c';
  }
  return {.x = in_order(context, x, labels, context.name() + ".x"), .rows = true};
}

std::vector<double> numbers_of(const NodeContext& context, std::size_t input, const std::string& what,
                               std::int64_t count) {
  const Constant& constant = context.constant(input, what);
  if (constant.count() != count)
    context.invalid("has " + text(constant.extents) + " as " + what + " for " + std::to_string(count) +
                    " channels or groups");
  return context.numbers(constant);
}

void drop_zeros(const NodeContext& context, std::vector<double>& bias, std::size_t input) {
  const bool trains = context.constant(input, "its bias").origin != Origin::number;
  if (!trains && all_are(bias, 0.0)) bias.clear();
}

View with_channels(const View& view, std::size_t along, const Shape& shape, std::int64_t channels) {
  std::optional<View> result = with_extent(view, along, shape.plane(), channels);
  if (!result) refuse_order("its channels are joined with other axes");
  return *std::move(result);
}

int narrow(const NodeContext& context, std::int64_t number, std::int64_t least, std::string_view what) {
  if (number < least || number > std::numeric_limits<int>::max())
    context.invalid("has the " + std::string(what) + " " + std::to_string(number));
  return static_cast<int>(number);
}

double text_number(double number) {
  const auto single = static_cast<float>(number);
  return single == number ? as_written(single) : number;
}

double limit_of(const NodeContext& context, std::size_t input, const std::string& what) {
  const Constant& number = context.constant(input, what);
  if (number.count() != 1) throw Refusal{what + " has " + text(number.extents) + " numbers: only one is read"};
  return text_number(number.at(0));
}

const OperatorRow* find_operator(std::string_view op_type) {
  static const std::map<std::string_view, OperatorRow> all = [] {
    std::map<std::string_view, OperatorRow> found;
    for (const auto operators : {arithmetic_operators, channel_operators, conv_operators, elementwise_operators,
                                 linear_operators, lrn_operators, normalisation_operators, pool_operators,
                                 resize_operators, sequence_operators, shape_operators})
      for (const OperatorRow& row : operators())
        for (const std::string_view name : row.op_types) found.emplace(name, row);
    return found;
  }();
  const auto found = all.find(op_type);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace lamina::onnx
