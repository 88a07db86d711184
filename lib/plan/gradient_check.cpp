// Compares gradients with central differences that stay away from kinks.

#include "lamina/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "kinks.h"
#include "lamina/error.h"
#include "lamina/random.h"
#include "lib/plan/run/initial.h"

namespace lamina {
namespace {

using planner::Kinks;
using Values = std::vector<double>;

constexpr int most_halvings = 10;
constexpr int most_draws = 16;

Values read(Device& device, const Tensor& tensor) {
  Values values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

Values normal(std::int64_t count, std::uint64_t key) {
  Values values(static_cast<std::size_t>(count));
  fill_normal(values, key);
  return values;
}

/// The plan under test. If it does not keep its values, a second plan shows the values before every kink.
class Subject {
 public:
  Subject(const Graph& graph, Backend& backend, const Options& options)
      : device_(backend.device()), plan_(graph, backend, options) {
    if (!options.fuse && options.keep_values && options.keep == Keep::all) return;
    Options plain = options;
    plain.fuse = false;
    plain.keep_values = true;
    plain.keep = Keep::all;
    plain.input_gradient = false;
    twin_ = std::make_unique<Plan>(graph, backend, plain);
  }

  Plan& plan() { return plan_; }

  /// Stores the current state: every later run starts from it.
  void keep_state() {
    for (const std::string& name : plan_.state_names()) {
      const Tensor tensor = plan_.state(name);
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype));
      device_.download(bytes.data(), tensor.data, bytes.size());
      state_.emplace_back(name, std::move(bytes));
    }
  }

  void set_parameter(const std::string& name, const Values& values) {
    upload(device_, plan_.parameter(name), std::span<const double>(values));
    if (twin_) upload(device_, twin_->parameter(name), std::span<const double>(values));
  }

  void set_input(const std::string& name, const Values& values) {
    upload(device_, plan_.input(name), std::span<const double>(values));
    if (twin_) upload(device_, twin_->input(name), std::span<const double>(values));
  }

  void forward() { run(plan_); }

  Kinks kinks() {
    Plan& plan = twin_ ? *twin_ : plan_;
    run(plan);
    Kinks kinks;
    const std::vector<Node>& nodes = plan_.graph().nodes();
    for (const Node& node : nodes) {
      const auto source = [&](std::size_t input) -> const Node& {
        return nodes[static_cast<std::size_t>(node.inputs[input])];
      };
      std::vector<Shape> x;
      for (std::size_t input = 0; input < node.inputs.size(); ++input) x.push_back(source(input).shape);
      kinks.add(node.op, x, node.shape, [&](std::size_t input) {
        const Node& from = source(input);
        return read(device_, std::holds_alternative<Input>(from.op) ? plan.input(from.name) : plan.value(from.name));
      });
    }
    return kinks;
  }

  Values output() { return read(device_, plan_.output()); }

 private:
  void run(Plan& plan) {
    for (const auto& [name, bytes] : state_) device_.upload(plan.state(name).data, bytes.data(), bytes.size());
    plan.parameters_changed();
    plan.forward();
  }

  Device& device_;
  Plan plan_;
  std::unique_ptr<Plan> twin_;
  std::vector<std::pair<std::string, std::vector<std::byte>>> state_;
};

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
  Values base;
  Values gradient;
};

class Check {
 public:
  Check(const Graph& graph, Backend& backend, const Options& options, const GradientCheck& how)
      : how_(how), options_(options), device_(backend.device()), subject_(graph, backend, options) {
    Plan& plan = subject_.plan();
    subject_.keep_state();
    const std::vector<std::int64_t> numbers = whole_numbers(plan.graph());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Node& node = plan.graph().nodes()[i];
      if (!std::holds_alternative<Input>(node.op)) continue;
      if (numbers[i] == 0)
        variables_.push_back({node.name, true, {}, {}});
      else
        set_whole_numbers(node, numbers[i]);
    }
    for (const std::string& name : plan.parameter_names())
      variables_.push_back({name, false, read(device_, plan.parameter(name)), {}});
    leave_special_points();
    keep_away_from_kinks();
    run_backward();
  }

  std::vector<GradientError> errors() {
    std::vector<GradientError> result;
    for (const Variable& variable : variables_) result.push_back(error_of(variable));
    return result;
  }

 private:
  void set(const Variable& variable, const Values& values) {
    if (variable.is_input)
      subject_.set_input(variable.name, values);
    else
      subject_.set_parameter(variable.name, values);
  }

  /// Labels and ids have no gradient, and stay as they are drawn here.
  void set_whole_numbers(const Node& input, std::int64_t count) {
    Values values(static_cast<std::size_t>(input.shape.count()));
    planner::fill_whole_numbers(values, count, key(input.name, "input"));
    subject_.set_input(input.name, values);
  }

  std::uint64_t key(const std::string& name, std::string_view purpose) const {
    return how_.seed * 0x9E3779B97F4A7C15U ^ hash(name) ^ hash(purpose) * 3;
  }

  /// The constructor's biases of 0 and scales of 1 would hide a missing factor or term.
  void leave_special_points() {
    for (Variable& variable : variables_) {
      if (variable.is_input) continue;
      const Shape shape = subject_.plan().parameter(variable.name).shape;
      if (shape.n != 1 || shape.plane() != 1) continue;
      const Values noise = normal(shape.count(), key(variable.name, "noise"));
      for (std::size_t i = 0; i < noise.size(); ++i) variable.base[i] += 0.1 * noise[i];
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
      variable.base = normal(subject_.plan().input(variable.name).shape.count(),
                             key(variable.name, "input") + static_cast<std::uint64_t>(draw));
      set(variable, variable.base);
    }
  }

  /// Parameter gradients start as NaN where they are overwritten, as random numbers where they are added to.
  void run_backward() {
    Plan& plan = subject_.plan();
    const Tensor upstream = plan.output_gradient();
    r_ = normal(upstream.shape.count(), key("", "upstream"));
    upload(device_, upstream, std::span<const double>(r_));
    std::vector<Values> before;
    for (const Variable& variable : variables_) {
      before.emplace_back(variable.base.size(), 0.0);
      if (variable.is_input) continue;
      if (options_.accumulate_parameters) fill_normal(before.back(), key(variable.name, "before"));
      Values target = before.back();
      if (!options_.accumulate_parameters)
        std::fill(target.begin(), target.end(), std::numeric_limits<double>::quiet_NaN());
      upload(device_, plan.parameter_gradient(variable.name), std::span<const double>(target));
    }
    subject_.forward();
    resolution_ = 1e-7 * norm_of_products(subject_.output(), r_);
    plan.backward();
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      Variable& variable = variables_[v];
      const std::string& name = variable.name;
      variable.gradient = read(device_, variable.is_input ? plan.input_gradient(name) : plan.parameter_gradient(name));
      for (std::size_t i = 0; i < variable.gradient.size(); ++i) variable.gradient[i] -= before[v][i];
    }
  }

  struct Difference {
    double value, step;
  };

  Difference differentiate(const Variable& variable, const Values& direction) {
    double step = how_.step;
    for (int halvings = 0;; ++halvings, step /= 2) {
      bool crossed = false;
      const auto loss = [&](double steps) {
        if (crossed) return 0.0L;
        Values moved = variable.base;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += steps * step * direction[i];
        set(variable, moved);
        crossed = halvings < most_halvings && subject_.kinks().sides != base_.sides;
        if (crossed) return 0.0L;
        subject_.forward();
        return dot(subject_.output(), r_);
      };
      const long double far_up = loss(2), far_down = loss(-2), up = loss(1), down = loss(-1);
      set(variable, variable.base);
      if (!crossed) return {static_cast<double>((far_down - far_up + 8 * (up - down)) / (12 * step)), step};
    }
  }

  GradientError error_of(const Variable& variable) {
    const std::size_t count = variable.base.size();
    const bool each = count <= static_cast<std::size_t>(std::max(how_.coordinates, 0));
    const int probes = each ? static_cast<int>(count) : how_.directions;
    Values errors, steps;
    double largest = 0;
    for (int probe = 0; probe < probes; ++probe) {
      Values direction(count, 0.0);
      if (each) {
        direction[static_cast<std::size_t>(probe)] = 1;
      } else {
        direction = normal(static_cast<std::int64_t>(count),
                           key(variable.name, "direction") + static_cast<std::uint64_t>(probe));
        const double length = std::sqrt(static_cast<double>(dot(direction, direction)));
        for (double& d : direction) d /= length;
      }
      const Difference difference = differentiate(variable, direction);
      errors.push_back(std::abs(difference.value - static_cast<double>(dot(variable.gradient, direction))));
      steps.push_back(difference.step);
      largest = std::max(largest, std::abs(difference.value));
    }
    GradientError result{variable.name, 0, how_.step};
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const double relative = errors[i] / std::max(largest, resolution_ / steps[i]);
      if (errors[i] != 0 && !(relative <= result.relative_error))
        result.relative_error = std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative;
      result.step = std::min(result.step, steps[i]);
    }
    return result;
  }

  GradientCheck how_;
  Options options_;
  Device& device_;
  Subject subject_;
  std::vector<Variable> variables_;
  Values r_;
  Kinks base_;
  double resolution_ = 0;  ///< times step: smaller derivatives are lost in the rounding of L
};

}  // namespace

std::vector<GradientError> check_gradients(const Graph& graph, Backend& backend, const Options& options,
                                           const GradientCheck& how) {
  if (options.mode == Mode::inference)
    throw UsageError("check_gradients: there are no gradients in inference mode; use Mode::training");
  if (!(how.step > 0) || how.directions < 1)
    throw UsageError("check_gradients: step must be positive and directions at least 1");
  Options with_inputs = options;
  with_inputs.input_gradient = true;
  return Check(graph, backend, with_inputs, how).errors();
}

double worst(const std::vector<GradientError>& errors) {
  double largest = 0;
  for (const GradientError& error : errors) largest = std::max(largest, error.relative_error);
  return largest;
}

}  // namespace lamina
