// Where ReLU, functions of one and two elements, maxima and the losses have no derivative.

#include "plan_under_test.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "lib/core/units/along.h"
#include "lib/core/units/binary.h"

namespace lamina::planner {
namespace {

using Values = std::vector<double>;

/// The values of x at which the function lacks its first or second derivative, for instance 0 for an elu.
Values borders(const Pointwise& op) {
  switch (op.function) {
    case Function::clip: return {op.a, op.b};
    case Function::hard_sigmoid: return op.a == 0 ? Values{} : Values{-op.b / op.a, (1 - op.b) / op.a};
    case Function::hard_swish: return {-3, 3};
    case Function::leaky_relu:
    case Function::elu:
    case Function::celu:
    case Function::abs: return {0};
    default: return {};
  }
}

/// Adds the kinks of one op.
struct KinkCollector {
  Kinks& kinks;

  void near(double distance) {
    // A distance of exactly 0 is structural (a dropped value, a window of rectified zeros) and stays 0 in every run.
    if (distance > 0) kinks.margin = std::min(kinks.margin, distance);
  }

  void side_of(double value, double border) {
    kinks.sides.push_back(value > border ? 1 : 0);
    near(std::abs(value - border));
  }

  /// Adds which of two elements is the larger, for each pair.
  void larger(const std::vector<Shape>& x, const Shape& y, const Values& a, const Values& b) {
    const std::vector<BinaryAxis> axes = binary_axes(x[0], x[1]);
    for (std::int64_t n = 0; n < y.n; ++n)
      for (std::int64_t i = 0; i < y.image(); ++i) {
        const BinarySteps at = place_at(axes, i);
        side_of(a[static_cast<std::size_t>(n * x[0].image() + at[0])],
                b[static_cast<std::size_t>(n * x[1].image() + at[1])]);
      }
  }

  /// Adds the winner of a window: each(visit) calls visit(place, value) for its cells.
  template <class Each>
  void winner_of(const Each& each) {
    double first = -std::numeric_limits<double>::infinity();
    each([&](std::int64_t, double value) { first = std::max(first, value); });
    // Values that are equal by construction (a constant background) may differ by rounding, which is no kink.
    const double tie = kinks.tie * std::max(1.0, std::abs(first));
    std::int64_t winner = -1;
    each([&](std::int64_t place, double value) {
      if (first - value > tie)
        near(first - value);
      else if (winner < 0)
        winner = place;
    });
    kinks.sides.push_back(static_cast<std::int32_t>(winner));
  }

  void winners(const MaxPool& op, const Shape& x, const Shape& y, const Values& values) {
    const auto along = [](int first, int window, int extent, const auto& visit) {
      for (int at = std::max(first, 0); at < std::min(first + window, extent); ++at) visit(at);
    };
    for (std::int64_t plane = 0; plane < std::int64_t{y.n} * y.c; ++plane)
      for (int p = 0; p < y.h; ++p)
        for (int q = 0; q < y.w; ++q)
          winner_of([&](const auto& visit) {
            along(p * op.stride.h - op.pad.h, op.window.h, x.h, [&](int h) {
              along(q * op.stride.w - op.pad.w, op.window.w, x.w, [&](int w) {
                const std::int64_t place = (plane * x.h + h) * x.w + w;
                visit(place, values[static_cast<std::size_t>(place)]);
              });
            });
          });
  }

  /// Adds the winners of a maximum over axes.
  void winners(const Reduce& op, const Shape& x, const Values& values) {
    const AxisCells of = along(x, op);
    const std::int64_t inner = of.inner, cells = of.cells, repeat = of.outer * cells * inner;
    for (std::int64_t i = 0; i < std::int64_t{x.n} * of.outer * inner; ++i) {
      const std::int64_t image = i / inner / of.outer, outer = i / inner % of.outer;
      const std::int64_t first = image * x.image() + outer * cells * inner + i % inner;
      winner_of([&](const auto& visit) {
        for (std::int64_t k = 0; k < of.repeats * cells; ++k) {
          const std::int64_t place = first + k / cells * repeat + k % cells * inner;
          visit(place, values[static_cast<std::size_t>(place)]);
        }
      });
    }
  }

  // The kinks of the losses: the points where the accuracy jumps and where the clip begins.

  /// `labels` chooses the probability that is clipped.
  void softmax(double clip, const Shape& shape, const Values& logits, const Values& labels) {
    const std::int64_t plane = shape.plane();
    for (std::int64_t row = 0; row < shape.n * plane; ++row) {
      const auto at = [&](std::int64_t c) {
        return logits[static_cast<std::size_t>((row / plane * shape.c + c) * plane + row % plane)];
      };
      std::int64_t winner = 0;
      for (std::int64_t c = 1; c < shape.c; ++c)
        if (at(c) > at(winner)) winner = c;
      kinks.sides.push_back(static_cast<std::int32_t>(winner));
      double sum = 0;
      for (std::int64_t c = 0; c < shape.c; ++c) {
        sum += std::exp(at(c) - at(winner));
        if (c != winner) near(at(winner) - at(c));
      }
      const double label = labels[static_cast<std::size_t>(row)];
      if (clip == 0 || !(label >= 0 && label < shape.c)) continue;
      const double log_p = at(static_cast<std::int64_t>(label)) - at(winner) - std::log(sum);
      side_of(log_p, std::log(clip));
      side_of(log_p, std::log1p(-clip));
    }
  }

  void sigmoid(double clip, const Values& logits) {
    for (const double x : logits) {
      side_of(x, 0);
      if (clip > 0) side_of(std::abs(x), std::log1p(-clip) - std::log(clip));
    }
  }
};

}  // namespace

void Kinks::add(const Op& op, const std::vector<Shape>& x, const Shape& y,
                const std::function<Values(std::size_t)>& values) {
  KinkCollector adder{*this};
  if (const auto* const pool = std::get_if<MaxPool>(&op)) {
    adder.winners(*pool, x[0], y, values(0));
  } else if (const auto* const reduce = std::get_if<Reduce>(&op); reduce != nullptr && reduce->by == ReduceBy::max) {
    adder.winners(*reduce, x[0], values(0));
  } else if (std::holds_alternative<Relu>(op) || std::holds_alternative<PRelu>(op)) {
    for (const double value : values(0)) adder.side_of(value, 0);
  } else if (const auto* const function = std::get_if<Pointwise>(&op)) {
    for (const double border : borders(*function))
      for (const double value : values(0)) adder.side_of(value, border);
  } else if (const auto* const two = std::get_if<Binary>(&op)) {
    if (two->function == BinaryFunction::maximum || two->function == BinaryFunction::minimum)
      adder.larger(x, y, values(0), values(1));
  } else if (const auto* const loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
    adder.softmax(loss->clip, x[0], values(0), values(1));
  } else if (const auto* const of_two = std::get_if<SigmoidCrossEntropy>(&op)) {
    adder.sigmoid(of_two->clip, values(0));
  }
}

}  // namespace lamina::planner
