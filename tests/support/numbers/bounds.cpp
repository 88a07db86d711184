// Bounds on the error of a correct result. Those of ops that sum or choose elements come from the oracle's results.

#include "tests/support/numbers/bounds.h"

#include "tests/support/cases/chain.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/op_bounds.h"
#include "tests/support/numbers/recurrent_bounds.h"
#include "tests/support/numbers/winograd_bounds.h"

namespace lamina::test {
namespace {

Feed with_absolute_dy(Feed feed) {
  feed.dy = absolute(std::move(feed.dy));
  return feed;
}

/// The visitor of all ops. An op without a function here and without a formula is a link error.
struct AllBounds : OpBounds {
  template <class T>
  Bounds operator()(const T& op) const {
    return formula_bounds(*this, op);
  }

  Bounds operator()(const Input&) const { return {}; }

  /// The bounds of a convolution. A transposed convolution is a convolution with y and dx exchanged.
  template <class Convolution>
  Bounds convolved(const Convolution& op) const {
    constexpr bool transposed = std::is_same_v<Convolution, ConvTranspose>;
    const double window = op.kernel.h * op.kernel.w;
    const int channels = x.c / op.groups, filters = op.channels / op.groups;
    Bounds bounds = linear(channels * window + 1, filters * window, static_cast<double>(y.n * y.plane()));
    const Conv conv{.channels = transposed ? x.c : op.channels,
                    .kernel = op.kernel,
                    .stride = op.stride,
                    .pad = op.pad,
                    .groups = op.groups,
                    .bias = op.bias && !transposed};
    const Feed its = transposed ? Feed{.x = {feed.dy}, .w = feed.w, .dy = feed.x[0]} : feed;
    const auto by_winograd = [&](std::size_t pass, Bound& bound, auto* function) {
      const auto winograd = winograd_named(algorithms[pass], op.kernel.h);
      if (winograd) bound = function(*winograd, conv, transposed ? y : x, its);
      return winograd.has_value();
    };
    if (by_winograd(0, bounds.y, transposed ? winograd_dx_bound : winograd_y_bound) && transposed && op.bias)
      for (std::size_t i = 0; i < bounds.y.terms.size(); ++i)
        bounds.y.terms[i] +=
            std::abs(feed.w[1][i / static_cast<std::size_t>(y.plane()) % static_cast<std::size_t>(y.c)]);
    if (!training) return bounds;
    by_winograd(1, bounds.dw[0], winograd_dw_bound);
    by_winograd(2, bounds.dx[0], transposed ? winograd_y_bound : winograd_dx_bound);
    return bounds;
  }
  Bounds operator()(const Conv& op) const { return convolved(op); }
  Bounds operator()(const ConvTranspose& op) const { return convolved(op); }
  Bounds operator()(const FullyConnected& op) const {
    return linear(static_cast<double>(x.image()) + 1, op.outputs, x.n);
  }
  Bounds operator()(const AveragePool& op) const {
    const double window = op.window.h * op.window.w;
    return linear(window, window, 0);
  }
  Bounds operator()(const GlobalAveragePool&) const { return linear(static_cast<double>(x.plane()), 1, 0); }
  Bounds operator()(const Reduce& op) const {
    const auto count = static_cast<double>(x.image() / y.image());
    return op.by == ReduceBy::max ? maxima(1) : linear(count, 1, 0);
  }
  Bounds operator()(const Add&) const {
    Bounds bounds = linear(static_cast<double>(c.x.size()), 0, 0);
    for (Bound& bound : bounds.dx) bound.count = 0;
    return bounds;
  }
  Bounds operator()(const Dropout&) const { return training ? linear(1, 1, 0) : plain(); }

  Bounds operator()(const MaxPool& op) const { return maxima(op.window.h * op.window.w); }
  Bounds operator()(const Relu&) const { return plain(); }
  Bounds operator()(const Concat&) const { return plain(); }
  Bounds operator()(const Slice&) const { return plain(); }

  /// The bounds of a function of two values. A difference has the terms of a sum.
  Bounds operator()(const Binary& op) const {
    using F = BinaryFunction;
    const double repeats = static_cast<double>(y.image() / std::min(c.x[0].image(), c.x[1].image()));
    if (op.function == F::maximum || op.function == F::minimum) return maxima(repeats);
    Case same = c;
    if (op.function == F::subtract) same.op = Binary{F::add};
    return OpBounds{same, feed, algorithms}.linear(1, repeats, 0);
  }
  Bounds operator()(const Pad& op) const {
    if (op.by == PadBy::value) return plain();
    return linear(0, static_cast<double>(y.plane()), 0);
  }
  /// The bounds of a resize: three sums of two products, and the roundings of the weights. All dy may add to one cell.
  Bounds operator()(const Resize&) const { return linear(8, static_cast<double>(y.plane()), 0); }
  Bounds operator()(const Reorder&) const { return plain(); }

  Bounds operator()(const Embedding&) const {
    Bounds bounds = exact(by_oracle(c, with_absolute_dy(feed)));
    for (Bound& bound : bounds.dw) bound.count = static_cast<double>(x.count()) + 8;
    return bounds;
  }

  Bounds operator()(const Recurrent&) const { return recurrent_by_definition(c, feed).bounds; }
};

}  // namespace

Bounds exact(const Result& result) {
  Bounds bounds{{absolute(result.y)}};
  for (const Values& dx : result.dx) bounds.dx.push_back({absolute(dx), 0});
  for (const Values& dw : result.dw) bounds.dw.push_back({absolute(dw), 0});
  for (const Values& state : result.state) bounds.state.push_back({absolute(state), 0});
  return bounds;
}

Bounds OpBounds::plain() const { return exact(by_oracle(c, feed)); }

Bounds OpBounds::linear(double y_terms, double dx_terms, double dw_terms) const {
  Feed all = with_absolute_dy(feed);
  for (Values& values : all.x) values = absolute(std::move(values));
  for (Values& values : all.w) values = absolute(std::move(values));
  Bounds bounds = exact(by_oracle(c, all));
  bounds.y.count = y_terms + 8;
  for (Bound& bound : bounds.dx) bound.count = dx_terms + 8;
  for (Bound& bound : bounds.dw) bound.count = dw_terms + 8;
  return bounds;
}

Bounds OpBounds::maxima(double window) const {
  Bounds bounds = exact(by_oracle(c, with_absolute_dy(feed)));
  for (Bound& bound : bounds.dx) bound.count = window + 8;
  return bounds;
}

Bounds bounds_of(const Case& c, const Feed& feed, const Algorithms& algorithms) {
  return std::visit(AllBounds{{c, feed, algorithms}}, c.op);
}

}  // namespace lamina::test
