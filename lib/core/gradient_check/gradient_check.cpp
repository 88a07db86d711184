// Compares gradients with central differences that stay away from kinks.

#include "lamina/gradient_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lib/core/plan/run/initial.h"
#include "plan_under_test.h"

namespace lamina {
namespace {

using planner::Kinks;
using planner::PlanUnderTest;
using planner::read_values;
using Values = std::vector<double>;

constexpr int most_halvings = 10;
constexpr int most_draws = 16;

Values normal(std::int64_t count, std::uint64_t key) {
  Values values(static_cast<std::size_t>(count));
  fill_normal(values, key);
  return values;
}

/// L = <y, r>, with more digits than y has, so that the sum adds no error to the differences.
long double dot(const Values& a, const Values& b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<long double>(a[i]) * b[i];
  return sum;
}

double norm_of_products(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i] * (a[i] * b[i]);
  return std::sqrt(sum);
}

/// A tensor of the net that L depends on.
struct Variable {
  std::string name;
  bool is_input;
  Shape shape;
  Values base;
  Values gradient;
};

/// A derivative along one direction.
struct Probe {
  std::int64_t place = -1;  ///< index of the only coordinate that moves; -1: several move
  double gradient = 0, difference = 0;
  double curvature = 0;  ///< bound on the effect of curvature on the difference
  double step = 0;       ///< step of the difference; 0: a kink at every step
};

class Check {
 public:
  Check(const Graph& graph, Backend& backend, const Options& options, const GradientCheck& how)
      : how_(how),
        options_(options),
        unit_(options.dtype == DType::f64 ? 0x1p-53 : 0x1p-24),
        device_(backend.device()),
        subject_(graph, backend, options, how) {
    if (how_.step == 0) how_.step = std::pow(unit_, 0.25);
    const Plan& plan = subject_.plan();
    const std::vector<std::int64_t> numbers = whole_numbers(plan.graph());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Node& node = plan.graph().nodes()[i];
      if (!std::holds_alternative<Input>(node.op)) continue;
      if (numbers[i] == 0)
        variables_.push_back({node.name, true, node.shape, {}, {}});
      else
        set_whole_numbers(node, numbers[i]);
    }
    for (const std::string& name : plan.parameter_names())
      variables_.push_back({name, false, plan.parameter(name).shape, read_values(device_, plan.parameter(name)), {}});
    leave_special_points();
    say("drawing inputs that are away from kinks");
    keep_away_from_kinks();
    run_backward();
    say("measuring how much roundoff there is");
    measure_roundoff();
  }

  GradientReport report() {
    std::vector<std::vector<Probe>> probes;
    for (const Variable& variable : variables_) {
      say("[" + std::to_string(probes.size() + 1) + "/" + std::to_string(variables_.size()) + "] " + variable.name);
      probes.push_back(probes_of(variable));
    }
    GradientReport report;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      GradientError& found = report.tensors.emplace_back(worst_of(variables_[v], probes[v]));
      if (found.passed() || found.probes == 0 || !found.place.empty()) continue;
      // The gradient is wrong along a direction. Single coordinates may show where.
      const GradientError at = worst_of(variables_[v], probes_of_coordinates(variables_[v]));
      if (at.probes > 0 && !at.passed()) found = at;
    }
    return report;
  }

 private:
  void say(const std::string& next) const {
    if (how_.progress) how_.progress(next);
  }

  void set(const Variable& variable, const Values& values) { subject_.set(variable.name, variable.is_input, values); }

  /// The numbers rounded to the element type.
  Values typed(Values values) const {
    if (options_.dtype != DType::f64)
      for (double& value : values) value = static_cast<double>(static_cast<float>(value));
    return values;
  }

  /// Moves the variable from its base by `distance` along `direction`, rounded to the type.
  Values move(const Variable& variable, Values direction, double distance) {
    for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = variable.base[i] + distance * direction[i];
    direction = typed(direction);
    set(variable, direction);
    return direction;
  }

  /// Labels and ids have no gradient. They are drawn here and then stay.
  void set_whole_numbers(const Node& input, std::int64_t count) {
    Values values(static_cast<std::size_t>(input.shape.count()));
    planner::fill_whole_numbers(values, count, key(input.name, "input"));
    subject_.set(input.name, true, values);
  }

  std::uint64_t key(const std::string& name, std::string_view purpose) const {
    return how_.seed * 0x9E3779B97F4A7C15U ^ hash(name) ^ hash(purpose) * 3;
  }

  /// Moves parameters off the constructor's values, biases of 0 and scales of 1, which would hide a missing factor or
  /// term.
  void leave_special_points() {
    for (Variable& variable : variables_) {
      if (variable.is_input) continue;
      const Shape& shape = variable.shape;
      if (shape.n != 1 || shape.plane() != 1) continue;
      const Values noise = normal(shape.count(), key(variable.name, "noise"));
      for (std::size_t i = 0; i < noise.size(); ++i) variable.base[i] += 0.1 * noise[i];
      variable.base = typed(variable.base);
      set(variable, variable.base);
    }
  }

  /// Draws the inputs a few times and takes the draw whose nearest kink is farthest away.
  void keep_away_from_kinks() {
    int best = 0;
    double margin = -1;
    for (int draw = 0; draw < most_draws && margin < 32 * how_.step; ++draw) {
      draw_inputs(draw);
      const double found = subject_.kinks().margin;
      if (found > margin) {
        margin = found;
        best = draw;
      }
    }
    draw_inputs(best);
    base_ = subject_.kinks();
  }

  void draw_inputs(int draw) {
    for (Variable& variable : variables_) {
      if (!variable.is_input) continue;
      variable.base =
          typed(normal(variable.shape.count(), key(variable.name, "input") + static_cast<std::uint64_t>(draw)));
      set(variable, variable.base);
    }
  }

  /// Parameter gradients start as NaN if the pass overwrites them, as random numbers if it adds to them.
  void run_backward() {
    Plan& plan = subject_.plan();
    const Tensor upstream = plan.output_gradient();
    r_ = typed(normal(upstream.shape.count(), key("", "upstream")));
    upload(device_, upstream, std::span<const double>(r_));
    std::vector<Values> before;
    for (const Variable& variable : variables_) {
      before.emplace_back(variable.base.size(), 0.0);
      if (variable.is_input) continue;
      if (options_.accumulate_parameters)
        before.back() = typed(normal(variable.shape.count(), key(variable.name, "before")));
      Values target = before.back();
      if (!options_.accumulate_parameters)
        std::fill(target.begin(), target.end(), std::numeric_limits<double>::quiet_NaN());
      upload(device_, plan.parameter_gradient(variable.name), std::span<const double>(target));
    }
    loss_ = loss();
    plan.backward();
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      Variable& variable = variables_[v];
      const std::string& name = variable.name;
      variable.gradient =
          read_values(device_, variable.is_input ? plan.input_gradient(name) : plan.parameter_gradient(name));
      for (std::size_t i = 0; i < variable.gradient.size(); ++i) variable.gradient[i] -= before[v][i];
    }
  }

  long double loss() {
    subject_.forward();
    return dot(subject_.output(), r_);
  }

  /// Measures roundoff by fourth differences of L over steps so small that the smooth part of L adds nothing.
  void measure_roundoff() {
    constexpr std::uint64_t samples = 8;
    roundoff_ = unit_ * norm_of_products(subject_.output(), r_);
    std::size_t count = 0;
    for (const Variable& variable : variables_) count += variable.base.size();
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      long double spread = 0;
      bool crossed = true;
      for (int halvings = 0; halvings <= most_halvings && crossed; ++halvings) {
        const double step = std::ldexp(how_.step / 64, -halvings) / std::sqrt(static_cast<double>(count));
        crossed = false;
        spread = 6 * loss_;
        for (const auto& [steps, weight] : {std::pair(2, 1), std::pair(-2, 1), std::pair(1, -4), std::pair(-1, -4)}) {
          for (const Variable& variable : variables_)
            move(variable, normal(variable.shape.count(), key(variable.name, "roundoff") + sample), steps * step);
          crossed = crossed || subject_.kinks().sides != base_.sides;
          spread += weight * loss();
        }
      }
      roundoff_ = std::max(roundoff_, std::abs(static_cast<double>(spread)) / std::sqrt(70.0));
    }
    for (const Variable& variable : variables_) set(variable, variable.base);
  }

  /// Compares the change of L along the direction with the change that the gradient predicts. The type rounds the
  /// points that are reached, so both use the rounded points: a wrong step would give a wrong derivative.
  Probe probe(const Variable& variable, const Values& direction) {
    Probe probe;
    probe.gradient = static_cast<double>(dot(variable.gradient, direction));
    for (int halvings = 0; halvings <= most_halvings && probe.step == 0; ++halvings) {
      const double step = std::ldexp(how_.step, -halvings);
      std::array<long double, 5> rest{};  // observed minus predicted change at -2, -1, 0, 1, 2 steps
      bool crossed = false;
      for (const int steps : {2, -2, 1, -1}) {
        const Values moved = move(variable, direction, steps * step);
        crossed = subject_.kinks().sides != base_.sides;
        if (crossed) break;
        long double& its = rest.begin()[steps + 2] = loss() - loss_;
        for (std::size_t i = 0; i < moved.size(); ++i)
          if (moved[i] != variable.base[i])
            its -= static_cast<long double>(variable.gradient[i]) * (moved[i] - variable.base[i]);
      }
      set(variable, variable.base);
      if (crossed) continue;
      const auto fourth = static_cast<double>((rest[0] - rest[4] + 8 * (rest[3] - rest[1])) / (12 * step));
      const auto second = static_cast<double>((rest[3] - rest[1]) / (2 * step));
      probe.difference = probe.gradient + fourth;
      probe.curvature = std::abs(fourth - second);
      probe.step = step;
    }
    return probe;
  }

  /// All coordinates, or a random choice if there are more than options allow.
  std::vector<Probe> probes_of_coordinates(const Variable& variable) {
    const std::size_t count = variable.base.size(), most = static_cast<std::size_t>(std::max(how_.coordinates, 0));
    std::vector<Probe> probes;
    for (std::size_t i = 0; i < std::min(count, most); ++i) {
      const std::size_t place = count <= most ? i : philox(key(variable.name, "coordinate"), i, 0)[0] % count;
      Values direction(count, 0.0);
      direction[place] = 1;
      probes.push_back(probe(variable, direction));
      probes.back().place = static_cast<std::int64_t>(place);
    }
    return probes;
  }

  std::vector<Probe> probes_of(const Variable& variable) {
    const std::size_t count = variable.base.size();
    if (options_.dtype == DType::f64 && count <= static_cast<std::size_t>(std::max(how_.coordinates, 0)))
      return probes_of_coordinates(variable);
    std::vector<Probe> probes;
    for (int i = 0; i < how_.directions; ++i) {
      Values direction = variable.gradient;
      double length = std::sqrt(static_cast<double>(dot(direction, direction)));
      if (i > 0 || !(length > 0) || !std::isfinite(length)) {
        direction =
            normal(static_cast<std::int64_t>(count), key(variable.name, "direction") + static_cast<std::uint64_t>(i));
        length = std::sqrt(static_cast<double>(dot(direction, direction)));
      }
      for (double& d : direction) d /= length;
      probes.push_back(probe(variable, direction));
    }
    return probes;
  }

  GradientError worst_of(const Variable& variable, const std::vector<Probe>& probes) const {
    GradientError worst{variable.name};
    bool seen = false;
    int compared = 0;
    for (const Probe& probe : probes) {
      if (probe.step == 0) continue;
      GradientError one{variable.name, place_text(variable.shape, probe.place), probe.gradient, probe.difference};
      one.tolerance = probe.curvature + 6 * roundoff_ / probe.step;
      one.step = probe.step;
      seen = seen || std::abs(probe.difference) > one.tolerance;
      one.probes = ++compared;
      if (compared == 1 || one.times() > worst.times()) worst = one;
    }
    worst.probes = compared;
    worst.skipped = static_cast<int>(probes.size()) - compared;
    worst.seen = seen;
    return worst;
  }

  static std::string place_text(const Shape& shape, std::int64_t place) {
    if (place < 0) return {};
    std::string text = "]";
    for (const int extent : {shape.w, shape.h, shape.c}) {
      text = "," + std::to_string(place % extent) + text;
      place /= extent;
    }
    return "[" + std::to_string(place) + text;
  }

  GradientCheck how_;
  Options options_;
  double unit_;  ///< the type's unit roundoff
  Device& device_;
  PlanUnderTest subject_;
  std::vector<Variable> variables_;
  Values r_;
  Kinks base_;
  long double loss_ = 0;
  double roundoff_ = 0;  ///< roundoff of L
};

}  // namespace

GradientReport check_gradients(const Graph& graph, Backend& backend, const Options& options, const GradientCheck& how) {
  if (options.mode == Mode::inference)
    throw UsageError("check_gradients: there are no gradients in inference mode; use Mode::training");
  if (is_half(options.dtype))
    throw UsageError("check_gradients: values are rounded to " + std::string(to_string(options.dtype)) +
                     ", so their differences say nothing; use f64 or f32");
  if (!(how.step >= 0) || how.directions < 1)
    throw UsageError("check_gradients: step must be 0 or more, and directions must be 1 or more");
  Options with_inputs = options;
  with_inputs.input_gradient = true;
  return Check(graph, backend, with_inputs, how).report();
}

}  // namespace lamina
