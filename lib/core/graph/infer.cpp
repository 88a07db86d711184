// Shapes that follow from an op and its inputs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "lamina/op.h"
#include "lib/core/text/enumerators.h"
#include "lib/core/text/one_of.h"
#include "lib/core/units/box.h"
#include "shape_checks.h"

namespace lamina {
namespace {

class Inference : ShapeChecks {
 public:
  using ShapeChecks::ShapeChecks;

  Inferred operator()(const Input& op) const {
    takes(0, 0);
    return result(op.shape);
  }

  Inferred operator()(const Conv& op) const {
    const Shape& x = only_input();
    check_conv(op, x);
    const Shape y{x.n, op.channels,  //
                  windows("rows", x.h, {op.kernel.h, op.stride.h, op.pad.h, op.dilation.h}, Rounding::down),
                  windows("columns", x.w, {op.kernel.w, op.stride.w, op.pad.w, op.dilation.w}, Rounding::down)};
    const int fan_in_channels = x.c / op.groups;
    if (!product_fits(fan_in_channels, op.kernel.h, op.kernel.w)) fail("more than 2^31 - 1 products make one element");
    return result(y, weights({op.channels, fan_in_channels, op.kernel.h, op.kernel.w}, op.channels, op.bias));
  }

  Inferred operator()(const ConvTranspose& op) const {
    const Shape& x = only_input();
    check_conv(op, x);
    at_least("output_pad", op.output_pad, 0);
    if (op.output_pad.h >= op.stride.h || op.output_pad.w >= op.stride.w) fail("output_pad must be below stride");
    const Shape y{x.n, op.channels,  //
                  spread("rows", x.h, {op.kernel.h, op.stride.h, op.pad.h, op.dilation.h}, op.output_pad.h),
                  spread("columns", x.w, {op.kernel.w, op.stride.w, op.pad.w, op.dilation.w}, op.output_pad.w)};
    if (!product_fits(x.c / op.groups, op.kernel.h, op.kernel.w) ||
        !product_fits(op.channels / op.groups, op.kernel.h, op.kernel.w))
      fail("more than 2^31 - 1 products make one element");
    return result(y, weights({x.c, op.channels / op.groups, op.kernel.h, op.kernel.w}, op.channels, op.bias));
  }

  Inferred operator()(const OneOf<MaxPool, AveragePool> auto& op) const {
    const Shape& x = only_input();
    check_geometry("window", op.window, op.stride, op.pad);
    check_enumerator(op.rounding, Rounding::up, to_string(op_) + ": rounding");
    if (2 * std::int64_t{op.pad.h} > op.window.h || 2 * std::int64_t{op.pad.w} > op.window.w)
      fail("pad is more than half the window, so that a window could be outside the image");
    return result({x.n, x.c, windows("rows", x.h, {op.window.h, op.stride.h, op.pad.h}, op.rounding),
                   windows("columns", x.w, {op.window.w, op.stride.w, op.pad.w}, op.rounding)});
  }

  Inferred operator()(const GlobalAveragePool&) const {
    const Shape& x = only_input();
    return result({x.n, x.c, 1, 1});
  }

  Inferred operator()(const OneOf<BatchNorm, GroupNorm, LayerNorm> auto& op) const {
    const Shape& x = only_input();
    if constexpr (requires { op.momentum; }) {
      in_range("momentum", op.momentum >= 0 && op.momentum <= 1, "between 0 and 1");
      at_least("ranks", op.ranks, 1);
    }
    if constexpr (requires { op.groups; }) {
      at_least("groups", op.groups, 1);
      if (x.c % op.groups != 0) fail(std::to_string(x.c) + " channels are not a multiple of the groups");
    }
    in_range("epsilon", op.epsilon > 0 && op.epsilon <= largest_float, "positive and finite");
    Inferred inferred = result(x, std::vector<Shape>(parameter_names(op_).size(), Shape{1, x.c, 1, 1}));
    if constexpr (requires { op.momentum; }) inferred.state = inferred.params;
    return inferred;
  }

  Inferred operator()(const Lrn& op) const {
    const Shape& x = only_input();
    at_least("size", op.size, 1);
    in_range("alpha", op.alpha >= 0 && op.alpha <= largest_float, "finite and not negative");
    in_range("beta", op.beta >= 0 && op.beta <= largest_float, "finite and not negative");
    in_range("k", op.k > 0 && op.k <= largest_float, "positive and finite");
    return result(x);
  }

  Inferred operator()(const Relu&) const { return result(only_input()); }

  Inferred operator()(const FullyConnected& op) const {
    const Shape& x = only_input();
    at_least("outputs", op.outputs, 1);
    return result({x.n, op.outputs, 1, 1}, weights({op.outputs, x.c, x.h, x.w}, op.outputs, op.bias));
  }

  Inferred operator()(const Dropout& op) const {
    const Shape& x = only_input();
    in_range("rate", op.rate >= 0 && op.rate < 1, "at least 0 and below 1");
    return result(x, {}, {Shape{}});
  }

  Inferred operator()(const Softmax& op) const {
    const Shape& x = only_input();
    check_enumerator(op.axis, Axis::column, to_string(op_) + ": axis");
    const std::int64_t in_an_image = op.axis == Axis::channel ? 1 : op.axis == Axis::row ? x.c : x.image() / x.w;
    if (x.n * in_an_image > largest) fail("more than 2^31 - 1 sums");
    return result(x);
  }

  Inferred operator()(const Pointwise& op) const {
    const Shape& x = only_input();
    const auto between = [&](const char* name, double value, double least, const char* words) {
      in_range(name, value >= least && value <= largest_float, words);
    };
    switch (op.function) {
      case Function::clip:
        in_range("low", fits_or_infinite(op.a), "a number that fits f32, or infinite");
        in_range("high", fits_or_infinite(op.b), "a number that fits f32, or infinite");
        in_range("low", op.a <= op.b, "at most high");
        break;
      case Function::hard_sigmoid:
        between("alpha", op.a, -largest_float, "finite in f32");
        between("beta", op.b, -largest_float, "finite in f32");
        break;
      case Function::leaky_relu: between("slope", op.a, 0, "finite and not negative"); break;
      case Function::elu:
        between("alpha", op.a, 0, "finite and not negative");
        between("scale", op.b, 0, "finite and not negative");
        break;
      case Function::celu:
        between("alpha", op.a, std::numeric_limits<float>::min(), "positive and finite in f32");
        break;
      case Function::pow:
        in_range("exponent", std::abs(op.a) <= largest_float && op.a != 0, "finite in f32 and not 0");
        break;
      default: break;
    }
    return result(x);
  }

  Inferred operator()(const SoftmaxCrossEntropy& op) const {
    const Shape& logits = logits_of(op);
    if (x_[1] != Shape{logits.n, 1, logits.h, logits.w})
      fail("the labels must have one channel, and n, h and w of the logits");
    return result(loss_and_accuracy);
  }

  Inferred operator()(const SigmoidCrossEntropy& op) const {
    if (logits_of(op) != x_[1]) fail("logits and labels differ in shape");
    return result(loss_and_accuracy);
  }

  Inferred operator()(const Embedding& op) const {
    const Shape& x = only_input();
    check_ids(x, op.vocabulary);
    at_least("features", op.features, 1);
    return result({x.n, op.features, x.h, x.w}, {{op.vocabulary, op.features, 1, 1}});
  }

  Inferred operator()(const Recurrent& op) const {
    const Shape& x = only_input();
    check_enumerator(op.cell, Cell::gru, to_string(op_) + ": cell");
    check_enumerator(op.steps, Steps::last, to_string(op_) + ": steps");
    check_enumerator(op.gates, Gates::hard_sigmoid, to_string(op_) + ": gates");
    at_least("hidden", op.hidden, 1);
    if (op.hidden > largest / 4) fail("more than 2^31 - 1 rows of weights");
    if (x.w != 1 && x.h != 1) fail("the steps of a sequence are along h or w, so the other extent must be 1");
    if (op.vocabulary != 0) check_ids(x, op.vocabulary);
    const int channels = op.vocabulary != 0 ? op.vocabulary : x.c, rows = op.matrices() * op.hidden;
    return result({x.n, op.hidden, op.steps == Steps::last ? 1 : static_cast<int>(x.plane()), 1},
                  {{rows, channels, 1, 1}, {rows, op.hidden, 1, 1}, {1, 4 * op.hidden, 1, 1}});
  }

  Inferred operator()(const Add&) const {
    takes(2, largest);
    for (const Shape& x : x_)
      if (x != x_.front()) fail("the inputs differ in shape");
    return result(x_.front());
  }

  Inferred operator()(const Binary& op) const {
    check_enumerator(op.function, BinaryFunction::minimum, "Binary: function");
    takes(2, 2);
    const Shape &a = x_[0], &b = x_[1];
    const auto joined = [this](int of_a, int of_b) {
      if (of_a != of_b && of_a != 1 && of_b != 1)
        fail("the inputs differ in channels, rows or columns, and neither has 1 of them");
      return std::max(of_a, of_b);
    };
    if (a.n != b.n) fail("the inputs differ in images; a value for all images is a parameter: use a scale_shift");
    return result({a.n, joined(a.c, b.c), joined(a.h, b.h), joined(a.w, b.w)});
  }

  Inferred operator()(const ScaleShift& op) const {
    const Shape& x = only_input();
    const Shape numbers{1, op.by_channel ? x.c : 1, 1, 1};
    const std::vector<Shape> both = {numbers, numbers};
    return op.learned ? result(x, both) : result(x, {}, both);
  }

  Inferred operator()(const PRelu& op) const {
    const Shape& x = only_input();
    return result(x, {{1, op.by_channel ? x.c : 1, 1, 1}});
  }

  Inferred operator()(const Pad& op) const {
    const Shape& x = only_input();
    at_least("before", op.before, 0);
    at_least("after", op.after, 0);
    at_least("channels before or after", std::min(op.channels_before, op.channels_after), 0);
    in_range("value", fits_or_infinite(op.value), "a number that fits f32, or infinite");
    check_enumerator(op.by, PadBy::wrap, to_string(op_) + ": by");
    if (op.by != PadBy::value && op.channels_before + std::int64_t{op.channels_after} > 0)
      fail("channels are padded by value alone");
    const Size most = op.by == PadBy::reflect ? Size{x.h - 1, x.w - 1} : Size{x.h, x.w};
    const bool reaches = op.by == PadBy::value || op.by == PadBy::edge ||
                         (std::max(op.before.h, op.after.h) <= most.h && std::max(op.before.w, op.after.w) <= most.w);
    if (!reaches)
      fail("a side can copy at most " + std::to_string(most.h) + " rows and " + std::to_string(most.w) +
           " columns of the image");
    return result({x.n, padded("channels", op.channels_before, x.c, op.channels_after),
                   padded("rows", op.before.h, x.h, op.after.h), padded("columns", op.before.w, x.w, op.after.w)});
  }

  Inferred operator()(const Resize& op) const {
    const Shape& x = only_input();
    at_least("to", op.to, 1);
    check_enumerator(op.by, ResizeBy::linear_aligned, to_string(op_) + ": by");
    for (const double step : {op.step_h, op.step_w}) {
      in_range("a step", step >= 0 && step <= largest_float, "finite in f32, and not negative");
      in_range("a step", step == 0 || op.by != ResizeBy::linear_aligned, "0 where corners are aligned");
    }
    return result({x.n, x.c, op.to.h, op.to.w});
  }

  Inferred operator()(const Reorder& op) const {
    const Shape& x = only_input();
    std::vector<int> order(op.order.begin(), op.order.end());
    std::ranges::sort(order);
    std::int64_t count = 1;
    if (order.size() != op.extents.size()) fail("its order is no permutation");
    for (std::size_t i = 0; i < order.size(); ++i) {
      at_least("an extent", op.extents[i], 1);
      count = std::min(count * op.extents[i], largest + 1);
      if (order[i] != static_cast<int>(i)) fail("its order is no permutation");
    }
    Inferred inferred = result({x.n, op.channels, op.pixels.h, op.pixels.w});
    if (count != x.image() || inferred.y.image() != x.image())
      fail("an image has " + std::to_string(x.image()) +
           " elements, but the extents or the result have another number");
    return inferred;
  }

  Inferred operator()(const Reduce& op) const {
    const Shape& x = only_input();
    check_enumerator(op.by, ReduceBy::max, to_string(op_) + ": by");
    if (!op.channels && !op.rows && !op.columns) fail("no axis: set channels, rows or columns");
    return result({x.n, op.channels ? 1 : x.c, op.rows ? 1 : x.h, op.columns ? 1 : x.w});
  }

  Inferred operator()(const Concat& op) const {
    takes(1, largest);
    check_enumerator(op.axis, Axis::column, "concat: axis");
    const std::string name(axis_name(op.axis));
    Shape y = x_.front();
    std::int64_t sum = 0;
    for (Shape x : x_) {
      sum += extent_of(x, op.axis);
      extent_of(x, op.axis) = extent_of(y, op.axis);
      if (x != y) fail("the inputs may differ only in their " + name);
      if (sum > largest) fail("more than 2^31 - 1 " + name);
    }
    extent_of(y, op.axis) = static_cast<int>(sum);
    return result(y);
  }

  Inferred operator()(const Slice& op) const {
    Shape y = only_input();
    check_enumerator(op.axis, Axis::column, "slice: axis");
    int& extent = extent_of(y, op.axis);
    const std::string name(axis_name(op.axis));
    at_least("first", op.first, 0);
    at_least(name.c_str(), op.count, 1);
    at_least("step", op.step, 1);
    if (op.first + (op.count - std::int64_t{1}) * op.step >= extent)
      fail("the input has only " + std::to_string(extent) + ' ' + name);
    extent = op.count;
    return result(y);
  }

 private:
  static constexpr Shape loss_and_accuracy{1, 2, 1, 1};

  template <class Loss>
  const Shape& logits_of(const Loss& op) const {
    takes(2, 2);
    in_range("clip", op.clip >= 0 && op.clip < 0.5, "at least 0 and below 0.5");
    return x_.front();
  }

  void check_conv(const OneOf<Conv, ConvTranspose> auto& op, const Shape& x) const {
    at_least("channels", op.channels, 1);
    at_least("groups", op.groups, 1);
    if (x.c % op.groups != 0) fail(std::to_string(x.c) + " input channels are not a multiple of the groups");
    if (op.channels % op.groups != 0) fail("channels are not a multiple of the groups");
    check_geometry("kernel", op.kernel, op.stride, op.pad);
    at_least("dilation", op.dilation, 1);
  }

  static std::vector<Shape> weights(const Shape& weight, int outputs, bool bias) {
    if (!bias) return {weight};
    return {weight, {1, outputs, 1, 1}};
  }
};

}  // namespace

Inferred infer(const Op& op, const std::vector<Shape>& x) { return std::visit(Inference(op, x), op); }

std::int64_t whole_numbers(const Op& op, const std::vector<Shape>& x, std::size_t i) {
  if (const auto* it = std::get_if<Embedding>(&op)) return it->vocabulary;
  if (const auto* it = std::get_if<Recurrent>(&op)) return it->vocabulary;
  if (i != 1) return 0;
  if (std::holds_alternative<SoftmaxCrossEntropy>(op)) return x.front().c;
  return std::holds_alternative<SigmoidCrossEntropy>(op) ? 2 : 0;
}

}  // namespace lamina
