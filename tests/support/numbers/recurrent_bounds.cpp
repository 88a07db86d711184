// A recurrent op by its definition, with bounds on errors.

#include "tests/support/numbers/recurrent_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lamina::test {
namespace {

/// A number, and the bound on the error of its computed value, in epsilons.
struct Estimate {
  double value = 0, error = 0;
};

Estimate operator*(Estimate a, Estimate b) {
  const double value = a.value * b.value;
  return {value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + std::abs(value)};
}
Estimate operator+(Estimate a, Estimate b) {
  return {a.value + b.value, a.error + b.error + std::abs(a.value) + std::abs(b.value)};
}

Estimate operator-(Estimate a, Estimate b) { return a + Estimate{-b.value, b.error}; }

/// A sum of a given number of products.
class Sum {
 public:
  explicit Sum(double length) : length_(length) {}
  void add(Estimate a, Estimate b) {
    value_ += a.value * b.value;
    terms_ += std::abs(a.value * b.value);
    errors_ += std::abs(a.value) * b.error + std::abs(b.value) * a.error;
  }
  Estimate total() const { return {value_, errors_ + (length_ + 8) * terms_}; }

 private:
  double length_, value_ = 0, terms_ = 0, errors_ = 0;
};

Estimate tanh_of(Estimate a) {
  const double value = std::tanh(a.value);
  return {value, (1 - value * value) * a.error + 8 * std::abs(value)};
}

/// 1 - a a
Estimate one_less_square(Estimate a) {
  return {1 - a.value * a.value, 2 * std::abs(a.value) * a.error + 2 * (1 + a.value * a.value)};
}

struct Gate {
  bool hard;
  Estimate operator()(Estimate a) const {
    if (hard) {
      const double value = std::clamp(0.2 * a.value + 0.5, 0.0, 1.0);
      return {value, 0.2 * a.error + 2 * (std::abs(0.2 * a.value) + 0.5)};
    }
    const double value = 1 / (1 + std::exp(-a.value));
    return {value, value * (1 - value) * a.error + 8 * value};
  }
  /// The derivative of a gate with respect to its argument, from the gate's value.
  Estimate slope(Estimate y) const {
    if (hard) return {y.value > 0 && y.value < 1 ? 0.2 : 0.0, 1};
    return {y.value * (1 - y.value), std::abs(1 - 2 * y.value) * y.error + 2 * y.value * (1 + y.value)};
  }
};

enum { i_gate, f_gate, g_gate, o_gate };
enum { r_gate, z_gate, n_gate, m_gate };
using Gates4 = std::array<Estimate, 4>;
using Vector = std::vector<Estimate>;

/// The numbers of one hidden value at one step. In a GRU, c and tanh_c are h.
struct Cell {
  Gates4 gates;
  Estimate c, tanh_c, h;
};

class Definition {
 public:
  Definition(const Case& c, const Feed& feed)
      : op_(std::get<Recurrent>(c.op)),
        feed_(feed),
        n_(c.x[0].n),
        steps_(c.x[0].h),
        channels_(op_.vocabulary != 0 ? op_.vocabulary : c.x[0].c),
        hidden_(op_.hidden),
        gru_(op_.cell == lamina::Cell::gru),
        gate_{op_.gates == Gates::hard_sigmoid} {
    y.resize(static_cast<std::size_t>(infer(c.op, c.x).y.count()));
    forward();
    if (c.mode == Mode::training) backward();
  }

  Vector y, dx;
  std::vector<Vector> dw;

 private:
  static std::size_t at(int a, int extent, int b) { return static_cast<std::size_t>(std::int64_t{a} * extent + b); }
  int place(int step) const { return op_.reverse ? steps_ - 1 - step : step; }
  Estimate x(int n, int channel, int step) const {
    if (op_.vocabulary != 0) return {feed_.x[0][at(n, steps_, place(step))] == channel ? 1.0 : 0.0};
    return {feed_.x[0][at(static_cast<int>(at(n, channels_, channel)), steps_, place(step))]};
  }
  Estimate w(std::size_t which, int row, int columns, int column) const {
    return {feed_.w[which][at(row, columns, column)]};
  }
  /// The index of a gate in weight_ih and in weight_hh; -1 if the gate has no weights there.
  int of_x(int gate) const { return gate < op_.matrices() ? gate : -1; }
  int of_h(int gate) const { return !gru_ || gate < n_gate ? gate : gate == n_gate ? -1 : 2; }
  Cell& cell(int n, int step, int unit) { return cells_[at(static_cast<int>(at(n, steps_, step)), hidden_, unit)]; }
  Estimate& y_at(int n, int unit, int step) {
    return op_.steps == Steps::all ? y[at(static_cast<int>(at(n, hidden_, unit)), steps_, place(step))]
                                   : y[at(n, hidden_, unit)];
  }
  double dy_at(int n, int unit, int step) const {
    if (op_.steps == Steps::all) return feed_.dy[at(static_cast<int>(at(n, hidden_, unit)), steps_, place(step))];
    return step + 1 == steps_ ? feed_.dy[at(n, hidden_, unit)] : 0;
  }

  void forward() {
    cells_.resize(at(n_ * steps_, hidden_, 0));
    for (int n = 0; n < n_; ++n)
      for (int step = 0; step < steps_; ++step)
        for (int unit = 0; unit < hidden_; ++unit) {
          Cell& now = cell(n, step, unit);
          Gates4& gates = now.gates;
          for (int gate = 0; gate < 4; ++gate) {
            Sum sum(channels_ + hidden_ + 1);
            for (int k = 0; k < channels_ && of_x(gate) >= 0; ++k)
              sum.add(w(0, of_x(gate) * hidden_ + unit, channels_, k), x(n, k, step));
            for (int k = 0; k < hidden_ && of_h(gate) >= 0 && step > 0; ++k)
              sum.add(w(1, of_h(gate) * hidden_ + unit, hidden_, k), cell(n, step - 1, k).h);
            sum.add(w(2, gate * hidden_ + unit, 1, 0), {1});
            gates[static_cast<std::size_t>(gate)] = sum.total();
          }
          const Estimate before = step > 0 ? cell(n, step - 1, unit).c : Estimate{};
          for (const std::size_t gate : {0, 1, 3})
            if (!gru_ || gate != m_gate) gates[gate] = gate_(gates[gate]);
          if (gru_) {
            const Estimate z = gates[z_gate], inside = gates[r_gate] * gates[m_gate];
            gates[n_gate] = tanh_of(gates[n_gate] + inside);
            now.c = now.tanh_c = now.h = (Estimate{1} - z) * gates[n_gate] + z * before;
          } else {
            gates[g_gate] = tanh_of(gates[g_gate]);
            now.c = gates[f_gate] * before + gates[i_gate] * gates[g_gate];
            now.tanh_c = tanh_of(now.c);
            now.h = gates[o_gate] * now.tanh_c;
          }
          if (op_.steps == Steps::all || step + 1 == steps_) y_at(n, unit, step) = now.h;
        }
  }

  Gates4& dgates(int n, int step, int unit) {
    return dgates_[at(static_cast<int>(at(n, steps_, step)), hidden_, unit)];
  }

  void backward() {
    dgates_.resize(cells_.size());
    for (int n = 0; n < n_; ++n) {
      Vector dc(static_cast<std::size_t>(hidden_));
      for (int step = steps_ - 1; step >= 0; --step)
        for (int unit = 0; unit < hidden_; ++unit) cell_gradient(n, step, unit, dc[static_cast<std::size_t>(unit)]);
    }
    weight_gradients();
    if (op_.vocabulary == 0) data_gradient();
  }

  void cell_gradient(int n, int step, int unit, Estimate& dc) {
    Sum sum(4 * hidden_ + 1);
    sum.add({dy_at(n, unit, step)}, {1});
    for (int gate = 0; gate < 4 && step + 1 < steps_; ++gate)
      for (int k = 0; k < hidden_ && of_h(gate) >= 0; ++k)
        sum.add(w(1, of_h(gate) * hidden_ + k, hidden_, unit), dgates(n, step + 1, k)[static_cast<std::size_t>(gate)]);
    const Estimate dh = sum.total();
    const Cell& now = cell(n, step, unit);
    const Estimate before = step > 0 ? cell(n, step - 1, unit).c : Estimate{};
    if (gru_) {
      const auto& [r, z, tanh_n, m] = now.gates;
      const Estimate whole = dc + dh, d = whole * (Estimate{1} - z) * one_less_square(tanh_n);
      dgates(n, step, unit) = {d * m * gate_.slope(r), whole * (before - tanh_n) * gate_.slope(z), d, d * r};
      dc = whole * z;
      return;
    }
    const auto& [i, f, g, o] = now.gates;
    const Estimate whole = dc + dh * o * one_less_square(now.tanh_c);
    dgates(n, step, unit) = {whole * g * gate_.slope(i), whole * before * gate_.slope(f),
                             whole * i * one_less_square(g), dh * now.tanh_c * gate_.slope(o)};
    dc = whole * f;
  }

  void weight_gradients() {
    const double rows = static_cast<double>(n_) * steps_;
    dw = {Vector(feed_.w[0].size()), Vector(feed_.w[1].size()), Vector(feed_.w[2].size())};
    for (int gate = 0; gate < 4; ++gate)
      for (int unit = 0; unit < hidden_; ++unit) {
        const auto sum_of = [&](const auto& factor) {
          Sum sum(rows);
          for (int n = 0; n < n_; ++n)
            for (int step = 0; step < steps_; ++step)
              sum.add(dgates(n, step, unit)[static_cast<std::size_t>(gate)], factor(n, step));
          return sum.total();
        };
        for (int k = 0; k < channels_ && of_x(gate) >= 0; ++k)
          dw[0][at(of_x(gate) * hidden_ + unit, channels_, k)] = sum_of([&](int n, int step) { return x(n, k, step); });
        for (int k = 0; k < hidden_ && of_h(gate) >= 0; ++k)
          dw[1][at(of_h(gate) * hidden_ + unit, hidden_, k)] =
              sum_of([&](int n, int step) { return step > 0 ? cell(n, step - 1, k).h : Estimate{}; });
        dw[2][at(gate, hidden_, unit)] = sum_of([](int, int) { return Estimate{1}; });
      }
  }

  void data_gradient() {
    dx.resize(feed_.x[0].size());
    for (int n = 0; n < n_; ++n)
      for (int k = 0; k < channels_; ++k)
        for (int step = 0; step < steps_; ++step) {
          Sum sum(4 * hidden_);
          for (int gate = 0; gate < op_.matrices(); ++gate)
            for (int unit = 0; unit < hidden_; ++unit)
              sum.add(w(0, gate * hidden_ + unit, channels_, k), dgates(n, step, unit)[static_cast<std::size_t>(gate)]);
          dx[at(static_cast<int>(at(n, channels_, k)), steps_, place(step))] = sum.total();
        }
  }

  const Recurrent& op_;
  const Feed& feed_;
  int n_, steps_, channels_, hidden_;
  bool gru_;
  Gate gate_;
  std::vector<Cell> cells_;
  std::vector<Gates4> dgates_;
};

}  // namespace

Defined recurrent_by_definition(const Case& c, const Feed& feed) {
  const Definition definition(c, feed);
  Defined defined;
  const auto split = [](const Vector& estimates, Values& values, Bound& bound) {
    bound.count = 2;
    for (const Estimate& estimate : estimates) values.push_back(estimate.value), bound.terms.push_back(estimate.error);
  };
  auto& [result, bounds] = defined;
  split(definition.y, result.y, bounds.y);
  if (c.mode == Mode::training) split(definition.dx, result.dx.emplace_back(), bounds.dx.emplace_back());
  for (const Vector& dw : definition.dw) split(dw, result.dw.emplace_back(), bounds.dw.emplace_back());
  return defined;
}

}  // namespace lamina::test
