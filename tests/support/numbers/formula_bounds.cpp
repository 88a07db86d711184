// Bounds of ops from the absolute values of the terms of their formulas.

#include "tests/support/cases/chain.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/op_bounds.h"

namespace lamina::test {
namespace {

struct Formulas : OpBounds {
  Bounds operator()(const BatchNorm& op) const {
    const Values& values = feed.x[0];
    if (!training) {
      Bounds bounds = plain();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t k = channel_of(i);
        const double normalised =
            (std::abs(values[i]) + std::abs(feed.state[0][k])) / std::sqrt(feed.state[1][k] + op.epsilon);
        bounds.y.terms[i] = std::abs(feed.w[0][k]) * normalised + std::abs(feed.w[1][k]);
      }
      bounds.y.count = 2 * 8;
      return bounds;
    }
    const double count = static_cast<double>(x.n * x.plane());
    Bounds bounds = norm(op.epsilon, x.c, count, [](int, int channel, std::int64_t) { return channel; });
    bounds.dw[0].count = 3 * (count + 8);  // roundings of x-hat and of the sum
    bounds.dw[1].count = count + 8;
    std::vector<double> magnitude(static_cast<std::size_t>(x.c)), squares(magnitude);
    for (std::size_t i = 0; i < values.size(); ++i) magnitude[channel_of(i)] += std::abs(values[i]) / count;
    for (std::size_t i = 0; i < values.size(); ++i)
      squares[channel_of(i)] += std::pow(std::abs(values[i]) + magnitude[channel_of(i)], 2);
    for (std::size_t k = 0; k < magnitude.size(); ++k) {
      bounds.state[0].terms[k] = (1 - op.momentum) * std::abs(feed.state[0][k]) + op.momentum * magnitude[k];
      bounds.state[1].terms[k] = (1 - op.momentum) * feed.state[1][k] + op.momentum * squares[k] / (count - 1);
    }
    bounds.state[0].count = count + 8;
    bounds.state[1].count = 2 * (count + 8);
    return bounds;
  }

  /// The bounds of an op that normalises parts of `count` elements. part(n, channel, place) is the index of an
  /// element's part.
  template <class Part>
  Bounds norm(double epsilon, std::int64_t parts, double count, const Part& part) const {
    Bounds bounds = plain();
    struct Sums {
      double mean = 0, magnitude = 0, variance = 0, g = 0, products = 0;
    };
    std::vector<Sums> all(static_cast<std::size_t>(parts));
    const auto each = [&](const auto& visit) {
      for (int n = 0; n < x.n; ++n)
        for (int k = 0; k < x.c; ++k)
          for (std::int64_t place = 0; place < x.plane(); ++place)
            visit(at(n, k, place), static_cast<std::size_t>(k), all[static_cast<std::size_t>(part(n, k, place))]);
    };
    const Values& values = feed.x[0];
    const auto number = [&](std::size_t which, std::size_t channel) {
      return !feed.w.empty() ? std::abs(feed.w[which][channel]) : which == 0 ? 1 : 0;
    };
    each([&](std::size_t i, std::size_t, Sums& its) {
      its.mean += values[i] / count;
      its.magnitude += std::abs(values[i]) / count;
    });
    each([&](std::size_t i, std::size_t, Sums& its) {
      its.variance += (values[i] - its.mean) * (values[i] - its.mean) / count;
    });
    const auto normalised = [&](std::size_t i, const Sums& its) {
      return (std::abs(values[i]) + its.magnitude) / std::sqrt(its.variance + epsilon);
    };
    each([&](std::size_t i, std::size_t channel, Sums& its) {
      bounds.y.terms[i] = number(0, channel) * normalised(i, its) + number(1, channel);
    });
    bounds.y.count = 2 * (count + 8);  // errors of x - mean and of 1 / sqrt(variance)
    if (!training) return bounds;
    for (Bound& bound : bounds.dw) std::ranges::fill(bound.terms, 0);
    each([&](std::size_t i, std::size_t channel, Sums& its) {
      its.g += number(0, channel) * std::abs(feed.dy[i]) / count;
      its.products += number(0, channel) * std::abs(feed.dy[i]) * normalised(i, its) / count;
      if (feed.w.empty()) return;
      bounds.dw[0].terms[channel] += std::abs(feed.dy[i]) * normalised(i, its);
      bounds.dw[1].terms[channel] += std::abs(feed.dy[i]);
    });
    each([&](std::size_t i, std::size_t channel, Sums& its) {
      bounds.dx[0].terms[i] = (number(0, channel) * std::abs(feed.dy[i]) + its.g + normalised(i, its) * its.products) /
                              std::sqrt(its.variance + epsilon);
    });
    bounds.dx[0].count = 6 * (count + 8);  // errors of x-hat (twice), 1 / sqrt and a sum
    for (Bound& bound : bounds.dw) bound.count = static_cast<double>(x.n * x.plane()) + 3 * (count + 8);
    return bounds;
  }
  Bounds operator()(const GroupNorm& op) const {
    const int members = x.c / op.groups;
    return norm(op.epsilon, std::int64_t{x.n} * op.groups, static_cast<double>(members * x.plane()),
                [&](int n, int channel, std::int64_t) { return std::int64_t{n} * op.groups + channel / members; });
  }
  Bounds operator()(const LayerNorm& op) const {
    return norm(op.epsilon, x.n * x.plane(), x.c,
                [&](int n, int, std::int64_t place) { return n * x.plane() + place; });
  }

  Bounds operator()(const Lrn& op) const {
    Bounds bounds = plain();
    const Values& values = feed.x[0];
    const double alpha = op.alpha / op.size, beta = op.beta;
    bounds.y.count = 2 * (op.size + 8);  // errors of the sum and of its power
    if (!training) return bounds;
    for (int n = 0; n < x.n; ++n)
      for (std::int64_t place = 0; place < x.plane(); ++place) {
        std::vector<double> sums;
        for (int k = 0; k < x.c; ++k) {
          double squares = 0;
          for (int i = std::max(k - op.size / 2, 0); i < std::min(k - op.size / 2 + op.size, x.c); ++i)
            squares += values[at(n, i, place)] * values[at(n, i, place)];
          sums.push_back(op.k + alpha * squares);
        }
        for (int k = 0; k < x.c; ++k) {
          double through_others = 0;
          for (int j = 0; j < x.c; ++j) {
            if (k < j - op.size / 2 || k >= j - op.size / 2 + op.size) continue;
            const std::size_t i = at(n, j, place);
            through_others += std::abs(feed.dy[i] * values[i]) * std::pow(sums[static_cast<std::size_t>(j)], -beta - 1);
          }
          bounds.dx[0].terms[at(n, k, place)] =
              std::abs(feed.dy[at(n, k, place)]) * std::pow(sums[static_cast<std::size_t>(k)], -beta) +
              2 * alpha * beta * std::abs(values[at(n, k, place)]) * through_others;
        }
      }
    bounds.dx[0].count = 4 * (op.size + 8);  // errors of the sum and its power, in y and under the outer sum
    return bounds;
  }

  Bounds operator()(const Softmax& op) const {
    const Result result = by_oracle(c, feed);
    Bounds bounds = exact(result);
    const std::int64_t apart = op.axis == Axis::channel ? x.plane() : op.axis == Axis::row ? x.w : 1;
    const std::int64_t cells = op.axis == Axis::channel ? x.c : op.axis == Axis::row ? x.h : x.w;
    for (std::int64_t first = 0; first < x.count(); ++first) {
      if (first / apart % cells != 0) continue;
      const auto element = [&](std::int64_t k) { return static_cast<std::size_t>(first + k * apart); };
      double largest = feed.x[0][element(0)], smallest = largest, through_sum = 0;
      for (std::int64_t k = 0; k < cells; ++k) {
        const std::size_t i = element(k);
        largest = std::max(largest, feed.x[0][i]);
        smallest = std::min(smallest, feed.x[0][i]);
        if (training) through_sum += (op.log ? 1 : result.y[i]) * std::abs(feed.dy[i]);
      }
      // The rounding of x - max causes a relative error of exp(x - max), and the rounding of y a relative error of
      // exp(y).
      const double spread = 1 + largest - smallest;
      for (std::int64_t k = 0; k < cells; ++k) {
        const std::size_t i = element(k);
        const double p = op.log ? std::exp(result.y[i]) : result.y[i];
        bounds.y.terms[i] = op.log ? 1 + spread - result.y[i] : p * spread;
        if (!training) continue;
        bounds.dx[0].terms[i] = op.log ? std::abs(feed.dy[i]) + p * through_sum * (spread - result.y[i])
                                       : p * (std::abs(feed.dy[i]) + through_sum) * spread;
      }
    }
    bounds.y.count = 2 * (static_cast<double>(cells) + 8);  // errors of exponentials and of their sum
    if (training)
      bounds.dx[0].count = 5 * (static_cast<double>(cells) + 8);  // errors of y, of y in the sum, and of the sum
    return bounds;
  }

  /// The bounds of a function of x with dx = dy y (1 - y) or dy (1 - y y). The difference counts as a sum of two terms.
  template <class Factor>
  Bounds elementwise(const Factor& factor) const {
    const Result result = by_oracle(c, feed);
    Bounds bounds = exact(result);
    bounds.y.count = 8;
    if (!training) return bounds;
    for (std::size_t i = 0; i < feed.dy.size(); ++i) bounds.dx[0].terms[i] = std::abs(feed.dy[i]) * factor(result.y[i]);
    bounds.dx[0].count = 3 * 8;
    return bounds;
  }
  /// The bounds of a function whose y and dx are sums. The sums of |terms| of y and of dx / dy are given as functions
  /// of x.
  template <class Terms, class SlopeTerms>
  Bounds of_terms(const Terms& terms, const SlopeTerms& slope_terms, double count) const {
    Bounds bounds = plain();
    for (std::size_t i = 0; i < feed.x[0].size(); ++i) {
      bounds.y.terms[i] = terms(feed.x[0][i]);
      if (training) bounds.dx[0].terms[i] = std::abs(feed.dy[i]) * slope_terms(feed.x[0][i]);
    }
    bounds.y.count = count;
    if (training) bounds.dx[0].count = 3 * count;
    return bounds;
  }
  Bounds operator()(const Pointwise& op) const {
    const auto same = [](double value) { return std::abs(value); };
    const auto logistic = [](double value) { return 1 / (1 + std::exp(-value)); };
    const double scale = op.function == Function::celu ? 1 : op.b, rate = op.function == Function::celu ? 1 / op.a : 1;
    const double below = op.function == Function::celu ? op.a : op.a * op.b;
    const auto power = [&](double exponent) {
      return [&op, exponent](double value) {
        return std::pow(std::abs(value), exponent) * (1 + std::abs(op.a * std::log(std::abs(value))));
      };
    };
    switch (op.function) {
      case Function::sigmoid: return elementwise([](double value) { return value * (1 + value); });
      case Function::tanh: return elementwise([](double value) { return 1 + value * value; });
      case Function::clip:
      case Function::abs: return plain();
      case Function::hard_sigmoid:
        return of_terms([&](double value) { return std::abs(op.a * value) + std::abs(op.b); },
                        [&](double) { return std::abs(op.a); }, 8);
      case Function::hard_swish:
        return of_terms([](double value) { return std::abs(value) * (std::abs(value) / 6 + 0.5); },
                        [](double value) { return std::abs(value) / 3 + 0.5; }, 8);
      case Function::silu:
        return of_terms([&](double value) { return std::abs(value) * logistic(value); },
                        [&](double value) { return logistic(value) * (1 + std::abs(value)); }, 9);
      case Function::leaky_relu:
        return of_terms([&](double value) { return std::max(value, -op.a * value); },
                        [&](double value) { return value > 0 ? 1 : op.a; }, 2);
      case Function::elu:
      case Function::celu:
        return of_terms([=](double value) { return value > 0 ? scale * value : -below * std::expm1(rate * value); },
                        [=](double value) { return value > 0 ? scale : below * rate; }, 8);
      case Function::gelu:
      case Function::gelu_tanh:
      case Function::mish:
        return of_terms(
            same, [](double value) { return 1 + std::abs(value); }, 12);
      case Function::softplus: return of_terms([](double value) { return std::log1p(std::exp(value)); }, logistic, 8);
      case Function::exp: {
        const auto exp = [](double value) { return std::exp(value); };
        return of_terms(exp, exp, 9);
      }
      case Function::log:
        return of_terms([](double value) { return std::abs(std::log(value)); }, [](double value) { return 1 / value; },
                        8);
      case Function::sqrt:
        return of_terms([](double value) { return std::sqrt(value); },
                        [](double value) { return 0.5 / std::sqrt(value); }, 4);
      case Function::pow:
        return of_terms(
            power(op.a), [&](double value) { return std::abs(op.a) * power(op.a - 1)(value); }, 8);
    }
    return {};
  }

  Bounds operator()(const ScaleShift& op) const {
    if (op.learned) return linear(2, 1, static_cast<double>(x.n * x.plane() * (op.by_channel ? 1 : x.c)));
    const auto number = [&](std::size_t which, std::size_t i) {
      return std::abs(feed.state[which][op.by_channel ? channel_of(i) : 0]);
    };
    Bounds bounds = plain();
    for (std::size_t i = 0; i < feed.x[0].size(); ++i) {
      bounds.y.terms[i] = number(0, i) * std::abs(feed.x[0][i]) + number(1, i);
      if (training) bounds.dx[0].terms[i] = number(0, i) * std::abs(feed.dy[i]);
    }
    bounds.y.count = 2;
    if (training) bounds.dx[0].count = 1;
    return bounds;
  }
  Bounds operator()(const PRelu& op) const {
    Bounds bounds = plain();
    for (std::size_t i = 0; i < feed.x[0].size(); ++i) {
      const std::size_t k = op.by_channel ? channel_of(i) : 0;
      const double slope = std::max(1.0, std::abs(feed.w[0][k]));
      bounds.y.terms[i] = slope * std::abs(feed.x[0][i]);
      if (!training) continue;
      bounds.dx[0].terms[i] = slope * std::abs(feed.dy[i]);
      bounds.dw[0].terms[k] += std::abs(feed.dy[i] * feed.x[0][i]);
    }
    bounds.y.count = 2;
    if (!training) return bounds;
    bounds.dx[0].count = 2;
    bounds.dw[0].count = static_cast<double>(x.n * x.plane() * (op.by_channel ? 1 : x.c)) + 8;
    return bounds;
  }
  /// The rows (or decisions) of a loss that are not ignored: their number, and the terms of their losses.
  struct Rows {
    double count = 0, terms = 0;
  };

  Bounds loss(const Rows& rows, Bounds bounds, double chain) const {
    bounds.y.terms[0] = rows.count > 0 ? rows.terms / rows.count : 0;
    bounds.y.count = chain + rows.count + 8;
    return bounds;
  }

  Bounds operator()(const SoftmaxCrossEntropy&) const {
    Bounds bounds = plain();
    Rows rows;
    for (const double label : feed.x[1]) rows.count += label >= 0 ? 1 : 0;
    for (int n = 0; n < x.n; ++n)
      for (std::int64_t place = 0; place < x.plane(); ++place) {
        const double label = feed.x[1][static_cast<std::size_t>(n * x.plane() + place)];
        if (!(label >= 0)) continue;
        double largest = feed.x[0][at(n, 0, place)], smallest = largest, sum = 0;
        for (int k = 0; k < x.c; ++k) {
          largest = std::max(largest, feed.x[0][at(n, k, place)]);
          smallest = std::min(smallest, feed.x[0][at(n, k, place)]);
        }
        for (int k = 0; k < x.c; ++k) sum += std::exp(feed.x[0][at(n, k, place)] - largest);
        // The rounding of x - max causes a relative error of exp(x - max).
        const double spread = 1 + largest - smallest;
        rows.terms += 2 * spread + std::log(sum);
        for (int k = 0; k < x.c && training; ++k) {
          const double p = std::exp(feed.x[0][at(n, k, place)] - largest) / sum;
          bounds.dx[0].terms[at(n, k, place)] = std::abs(feed.dy[0]) * (p * spread + (k == label ? 1 : 0)) / rows.count;
        }
      }
    if (training) bounds.dx[0].count = 3 * (x.c + 8);
    return loss(rows, bounds, x.c + 8);
  }

  Bounds operator()(const SigmoidCrossEntropy&) const {
    Bounds bounds = plain();
    Rows rows;
    for (const double label : feed.x[1]) rows.count += label >= 0 ? 1 : 0;
    for (std::size_t i = 0; i < feed.x[0].size(); ++i) {
      const double logit = feed.x[0][i], label = feed.x[1][i];
      if (!(label >= 0)) continue;
      rows.terms += std::max(logit, 0.0) + std::abs(logit * label) + std::log1p(std::exp(-std::abs(logit)));
      if (training) bounds.dx[0].terms[i] = std::abs(feed.dy[0]) * (1 / (1 + std::exp(-logit)) + label) / rows.count;
    }
    if (training) bounds.dx[0].count = 3 * 8;
    return loss(rows, bounds, 8);
  }
};

}  // namespace

template <class T>
Bounds formula_bounds(const OpBounds& its, const T& op) {
  return Formulas{its}(op);
}

template Bounds formula_bounds(const OpBounds&, const BatchNorm&);
template Bounds formula_bounds(const OpBounds&, const GroupNorm&);
template Bounds formula_bounds(const OpBounds&, const LayerNorm&);
template Bounds formula_bounds(const OpBounds&, const Lrn&);
template Bounds formula_bounds(const OpBounds&, const Softmax&);
template Bounds formula_bounds(const OpBounds&, const Pointwise&);
template Bounds formula_bounds(const OpBounds&, const ScaleShift&);
template Bounds formula_bounds(const OpBounds&, const PRelu&);
template Bounds formula_bounds(const OpBounds&, const SoftmaxCrossEntropy&);
template Bounds formula_bounds(const OpBounds&, const SigmoidCrossEntropy&);

}  // namespace lamina::test
