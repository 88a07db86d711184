// BatchNormalization, Softmax, Dropout.

#include <algorithm>
#include <cmath>

#include "lamina/error.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

/// How each opset says that a BatchNormalization normalises by the batch: from 7 to 13 by its outputs.
bool is_by_batch(const Call& call) {
  const NodeMessage& node = call.attributes().node();
  if (call.opset() >= 14) return call.attributes().integer("training_mode", 0) != 0;
  if (call.opset() < 7) return call.attributes().integer("is_test", 0) == 0;
  return std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                     [](std::string_view output) { return !output.empty(); });
}

}  // namespace

/// ONNX's momentum is what remains of the running statistics; ours is what comes in. In training ONNX's running
/// variance is that of the whole batch, ours the unbiased one. What multiplies and adds by channel afterwards goes into
/// scale and shift. Where slices are among the channels, it is a scale and a shift, and not trainable.
void import_batch_norm(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  const Shape shape = x.value.shape();
  const std::int64_t slices = x.view.size() == 5 ? extent(x.view[2]) : 1;  // among the channels after a Conv over them
  const bool over_slices = slices > 1 && x.view[1] == axis(shape.c / slices, slices * shape.plane());
  if (x.view.size() < 2 || (!over_slices && x.view[1] != axis(shape.c, shape.plane()))) {
    throw Refusal{"the second axis of its input of " + text(extents(x.view)) + " is not the channel axis of " +
                  to_string(shape) + ": it would need an op that moves numbers"};
  }
  if (is_by_batch(call) && !call.for_training()) {
    throw Refusal{"it normalises by the batch also in inference: OnnxOptions::training reads it as an op of training"};
  }
  if (call.opset() < 9 && node.integer("spatial", 1) == 0) {
    throw Refusal{"it normalises each pixel (spatial 0): it would need an op that does"};
  }
  call.only_output("running statistics as values");
  const Extents result = extents(x.view);
  const std::int64_t channels = result[1];
  std::vector<double> numbers[4];
  constexpr const char* names[] = {"its scale", "its bias", "its mean", "its variance"};
  for (std::size_t i = 0; i < 4; ++i) {
    const Constant& constant = call.constant(i + 1, names[i]);
    if (constant.count() != channels) {
      node.invalid("has " + text(constant.extents) + " as " + names[i] + " for " + std::to_string(channels) +
                   " channels");
    }
    numbers[i] = call.numbers(constant);
  }
  const ElementType type = call.constant(1, names[0]).type;
  const Call::Affine affine = call.absorb_affine(result, 1, false);
  for (std::size_t c = 0; c < affine.scale.size(); ++c) {
    numbers[0][c] *= affine.scale[c];
    numbers[1][c] = numbers[1][c] * affine.scale[c] + affine.shift[c];
  }
  const double epsilon = node.number("epsilon", 1e-5);
  if (over_slices) {
    Call::Affine all;
    call.charge(2 * shape.c);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      const double scale = numbers[0][c] / std::sqrt(numbers[3][c] + epsilon);
      all.scale.insert(all.scale.end(), static_cast<std::size_t>(slices), scale);
      all.shift.insert(all.shift.end(), static_cast<std::size_t>(slices), numbers[1][c] - scale * numbers[2][c]);
    }
    const Value y = call.append(Conv{.channels = shape.c, .kernel = 1, .groups = shape.c, .trainable = false},
                                {x.value}, call.name());
    call.weights(y, "weight", {shape.c, 1, 1, 1}, std::move(all.scale), type);
    call.weights(y, "bias", {shape.c}, std::move(all.shift), type);
    return call.result({.value = y, .view = x.view, .type = x.type});
  }
  const double momentum = std::clamp(as_written(static_cast<float>(1 - node.number("momentum", 0.9))), 0.0, 1.0);
  const Value y = call.append(BatchNorm{.epsilon = epsilon, .momentum = momentum}, {x.value}, call.name());
  constexpr const char* parts[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i) call.weights(y, parts[i], {channels}, std::move(numbers[i]), type);
  call.result({.value = y, .view = x.view, .type = x.type});
}

/// Before opset 13 over all axes from `axis` on, from then on along one.
void import_softmax(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  const Shape shape = x.value.shape();
  const Extents all = extents(x.view);
  View over;
  if (call.opset() < 13) {
    const std::int64_t at = node.integer("axis", 1);
    const std::size_t first = at == static_cast<std::int64_t>(all.size()) ? all.size() : axis_of(node, at, all.size());
    const View rest(x.view.begin() + static_cast<std::ptrdiff_t>(first), x.view.end());
    const Extents joined = {*element_count({all.begin() + static_cast<std::ptrdiff_t>(first), all.end()})};
    over = reshaped(rest, joined).value_or(View{});
  } else {
    over = {x.view[axis_of(node, node.integer("axis", -1), all.size())]};
  }
  if (over.size() != 1 || over.front() != axis(shape.c, shape.plane())) {
    throw Refusal{"its axis of " + text(all) + " is not the channel axis of " + to_string(shape) +
                  ": it would need an op that moves numbers (Reshape, Transpose)"};
  }
  const Value y = call.append(Softmax{}, {x.value}, call.name());
  call.result({.value = y, .view = x.view, .type = x.type});
}

void import_dropout(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  double rate = node.number("ratio", 0.5);
  if (call.has(1)) {
    const Constant& ratio = call.constant(1, "its ratio");
    if (ratio.count() != 1) node.invalid("has a ratio of " + text(ratio.extents));
    rate = as_written(static_cast<float>(ratio.at(0)));
  }
  bool training = call.opset() < 7 && node.integer("is_test", 0) == 0;
  if (call.has(2)) {
    const Constant& mode = call.constant(2, "its training_mode");
    training = mode.count() == 1 && mode.at(0) != 0;
  }
  const bool drops = training && rate != 0;
  if (drops && !call.for_training()) {
    throw Refusal{"it drops also in inference: OnnxOptions::training reads it as an op of training"};
  }
  if (drops) call.only_output("the mask as a value");
  if (call.wanted(1)) {  // the mask: nothing is dropped
    call.charge(1);
    const ElementType type = call.opset() < 10 ? x.type : ElementType::boolean;
    call.result(Constant{.type = type, .extents = extents(x.view), .values = {1}, .uniform = true}, 1);
  }
  if (!(rate >= 0 && rate < 1)) throw Refusal{"its ratio is " + std::to_string(rate) + ": ours takes 0 to below 1"};
  const Value y = call.append(Dropout{.rate = rate}, {x.value}, call.name());
  call.result({.value = y, .view = x.view, .type = x.type});
}

}  // namespace lamina::onnx
