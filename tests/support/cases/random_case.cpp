// Random single ops.

#include "tests/support/cases/random_case.h"

#include "lamina/error.h"
#include "lib/core/units/box.h"

namespace lamina::test {
namespace {

Conv random_conv(Dice& dice, int channels) {
  const int groups = dice.chance(0.3) && channels % 2 == 0 ? 2 : 1;
  return {.channels = groups * dice(1, 3),
          .kernel = {dice(1, 3), dice(1, 3)},
          .stride = {dice(1, 2), dice(1, 2)},
          .pad = {dice(0, 2), dice(0, 2)},
          .dilation = dice.chance(0.2) ? Size{dice(1, 2), dice(1, 2)} : Size{1},
          .groups = groups,
          .bias = dice.chance(0.5)};
}

MaxPool random_pool(Dice& dice) {
  const Size window{dice(1, 3), dice(1, 3)};
  return {.window = window,
          .stride = {dice(1, 3), dice(1, 3)},
          .pad = {dice(0, window.h / 2), dice(0, window.w / 2)},
          .rounding = dice.chance(0.5) ? Rounding::up : Rounding::down};
}

AveragePool random_average_pool(Dice& dice) {
  const MaxPool pool = random_pool(dice);
  return {.window = pool.window,
          .stride = pool.stride,
          .pad = pool.pad,
          .rounding = pool.rounding,
          .count_padding = dice.chance(0.5)};
}

Lrn random_lrn(Dice& dice) {
  return {.size = dice(1, 6), .alpha = dice.chance(0.5) ? 1e-2 : 1.0, .beta = 0.75, .k = dice.chance(0.5) ? 1.0 : 2.0};
}

Op random_pointwise(Dice& dice) {
  switch (dice(0, 8)) {
    case 0: return Pointwise{Function::clip, dice(-4, 0) * 0.25, dice(1, 4) * 0.25};
    case 1: return Pointwise{Function::hard_sigmoid, dice(1, 4) * 0.25, 0.5};
    case 3: return Pointwise{Function::leaky_relu, dice(0, 4) * 0.25};
    case 5: return Pointwise{Function::elu, dice(1, 4) * 0.5, dice(1, 2) * 0.75};
    case 6: return Pointwise{Function::celu, dice(1, 4) * 0.5};
    case 7: return Pointwise{Function::softplus};
    case 8: return Pointwise{dice.chance(0.5) ? Function::gelu : Function::mish};
    case 2: return Pointwise{Function::hard_swish};
    default: return Pointwise{Function::silu};
  }
}

/// A random function of two values. At least half of the cases have equal shapes. There are no quotients, because
/// finite differences fail for divisors near 0.
Case random_binary(Dice& dice, const Shape& x) {
  using F = BinaryFunction;
  constexpr F functions[] = {F::add, F::subtract, F::multiply, F::multiply, F::maximum, F::minimum};
  std::array<Shape, 2> both = {x, x};
  if (dice.chance(0.5))
    for (int Shape::*extent : {&Shape::c, &Shape::h, &Shape::w})
      if (dice.chance(0.5)) both[static_cast<std::size_t>(dice(0, 1))].*extent = 1;
  return {"random", Binary{functions[dice(0, 5)]}, {both[0], both[1]}};
}

Case draw_case(Dice& dice) {
  const Shape x{dice(1, 3), dice(1, 9), dice(1, 9), dice(1, 9)};
  const Shape one_channel{x.n, 1, x.h, x.w};
  switch (dice(0, 12)) {
    case 0:
    case 1: {
      Conv op = random_conv(dice, x.c);
      op.channels *= dice(1, 4);
      return {"random", op, {x}};
    }
    case 2: return {"random", BatchNorm{.epsilon = 0.01, .momentum = 0.5}, {{x.n + 1, x.c, x.h + 1, x.w + 1}}};
    case 3: return {"random", FullyConnected{.outputs = dice(1, 19), .bias = dice.chance(0.5)}, {x}};
    case 4: return {"random", Add{}, std::vector<Shape>(static_cast<std::size_t>(dice(2, 4)), x)};
    case 5: {
      std::vector<Shape> shapes;
      const auto axis = static_cast<Axis>(dice(0, 2));
      for (int i = dice(1, 4); i > 0; --i) extent_of(shapes.emplace_back(x), axis) = dice(1, 5);
      return {"random", Concat{axis}, shapes};
    }
    case 6:
      return dice.chance(0.5)
                 ? Case{"random", SoftmaxCrossEntropy{.clip = dice.chance(0.3) ? 0.2 : 0}, {x, one_channel}}
                 : Case{"random", SigmoidCrossEntropy{.clip = dice.chance(0.3) ? 0.3 : 0}, {x, x}};
    case 7: return {"random", Embedding{.vocabulary = dice(1, 20), .features = dice(1, 9)}, {one_channel}};
    case 8: return random_binary(dice, x);
    default: return {"random", random_op(dice, x), {x}};
  }
}

}  // namespace

Slice random_slice(Dice& dice, Shape x) {
  Slice op{.axis = static_cast<Axis>(dice(0, 2)), .first = 0, .count = 1, .step = dice(1, 3)};
  const int extent = extent_of(x, op.axis);
  op.count = dice(1, (extent - 1) / op.step + 1);
  op.first = dice(0, extent - 1 - (op.count - 1) * op.step);
  return op;
}

Op random_op(Dice& dice, const Shape& x) {
  switch (dice(0, 16)) {
    case 0:
    case 1: return random_conv(dice, x.c);
    case 2: {
      const Conv like = random_conv(dice, x.c);
      return ConvTranspose{.channels = like.channels,
                           .kernel = like.kernel,
                           .stride = like.stride,
                           .pad = like.pad,
                           .output_pad = {dice(0, like.stride.h - 1), dice(0, like.stride.w - 1)},
                           .dilation = like.dilation,
                           .groups = like.groups,
                           .bias = like.bias};
    }
    case 3: return random_pool(dice);
    case 4: return random_average_pool(dice);
    case 5: return GlobalAveragePool{};
    case 6: return random_lrn(dice);
    case 7: return Softmax{static_cast<Axis>(dice(0, 2)), dice.chance(0.5)};
    case 8: return Pointwise{dice.chance(0.5) ? Function::sigmoid : Function::tanh};
    case 9: return random_pointwise(dice);
    case 10: {
      Pad pad{.before = {dice(0, 3), dice(0, 3)},
              .after = {dice(0, 3), dice(0, 3)},
              .value = dice(-2, 2) * 0.5,
              .by = dice.chance(0.5) ? PadBy::value : static_cast<PadBy>(dice(1, 3))};
      if (pad.by == PadBy::value) pad.channels_before = dice(0, 2), pad.channels_after = dice(0, 2);
      return pad;
    }
    case 11: {
      Resize op{.to = {dice(1, 20), dice(1, 20)}, .by = static_cast<ResizeBy>(dice(0, 3))};
      if (op.by != ResizeBy::linear_aligned && dice.chance(0.3)) op.step_h = op.step_w = dice(1, 30) * 0.1;
      return op;
    }
    case 12: {
      const Axes extents = {x.c, x.h, x.w};
      std::array<int, 3> order = {0, 1, 2};
      std::swap(order[0], order[static_cast<std::size_t>(dice(0, 2))]);
      std::swap(order[1], order[static_cast<std::size_t>(dice(1, 2))]);
      const auto at = [&](std::size_t i) { return extents[static_cast<std::size_t>(order[i])]; };
      return Reorder{extents, {order[0], order[1], order[2]}, at(0), {at(1), at(2)}};
    }
    case 13:
      return dice.chance(0.5) ? Op{GroupNorm{.groups = dice(1, 3), .epsilon = 0.01, .affine = dice.chance(0.7)}}
                              : Op{LayerNorm{.epsilon = 0.01, .affine = dice.chance(0.7)}};
    case 14: {
      const int axes = dice(1, 7);
      return Reduce{static_cast<ReduceBy>(dice(0, 2)), axes % 2 == 1, axes / 2 % 2 == 1, axes > 3};
    }
    case 15:
      return dice.chance(0.5) ? Op{PRelu{.by_channel = dice.chance(0.5)}}
                              : Op{ScaleShift{.by_channel = dice.chance(0.7)}};
    default: return random_slice(dice, x);
  }
}

Case random_case(std::uint64_t seed) {
  Dice dice(seed);
  for (;;) {
    Case c = draw_case(dice);
    try {
      infer(c.op, c.x);
      return c;
    } catch (const ShapeError&) {  // the op does not accept its shape: try again
    }
  }
}

}  // namespace lamina::test
