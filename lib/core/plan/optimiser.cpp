// The optimisers by name, their state, the ranges of their numbers.

#include "lamina/optimiser.h"

#include <array>
#include <cmath>
#include <type_traits>

#include "lamina/error.h"
#include "lamina/near_names.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

struct Entry {
  std::string_view name;
  NamedOptimiser of;
};

const std::array<Entry, 11>& entries() {
  static const std::array<Entry, 11> all = {{
      {"sgd", {Sgd{}, 1e-3}},
      {"rmsprop", {RmsProp{}, 1e-2}},
      {"adagrad", {Adagrad{}, 1e-2}},
      {"adadelta", {Adadelta{}, 1}},
      {"adam", {Adam{}, 1e-3}},
      {"adamw", {AdamW{}, 1e-3}},
      {"keras_sgd", {KerasSgd{}, 1e-2}},
      {"keras_rmsprop", {RmsProp{.rho = 0.9}, 1e-3}},
      {"keras_adagrad", {Adagrad{.epsilon = 1e-8}, 1e-2}},
      {"keras_adadelta", {Adadelta{.rho = 0.95, .epsilon = 1e-8}, 1}},
      {"keras_adam", {KerasAdam{}, 1e-3}},
  }};
  return all;
}

void demand(bool holds, const char* name, double value, const char* range) {
  if (!holds)
    throw UsageError(std::string("optimiser: ") + name + " is " + shortest(value) + "; it should be " + range);
}

void demand_share(const char* name, double value) {
  demand(value >= 0 && value < 1, name, value, "at least 0 and below 1");
}

void demand_epsilon(double value) { demand(value > 0 && std::isfinite(value), "epsilon", value, "above 0"); }

void demand_decay(double value) { demand(value >= 0 && std::isfinite(value), "weight_decay", value, "at least 0"); }

template <class T>
void check_momentum(const T& op) {
  demand_share("momentum", op.momentum);
  demand(!op.nesterov || op.momentum > 0, "momentum", op.momentum, "above 0 for Nesterov's rule");
}

template <class T>
void check_mean(const T& op) {
  demand_share("rho", op.rho);
  demand_epsilon(op.epsilon);
  demand_decay(op.weight_decay);
}

template <class T>
void check_adam(const T& op) {
  demand_share("beta1", op.beta1);
  demand_share("beta2", op.beta2);
  demand_epsilon(op.epsilon);
}

struct Check {
  void operator()(const Sgd& op) const { check_momentum(op), demand_decay(op.weight_decay); }
  void operator()(const KerasSgd& op) const { check_momentum(op); }
  void operator()(const RmsProp& op) const { check_mean(op); }
  void operator()(const Adagrad& op) const { demand_epsilon(op.epsilon), demand_decay(op.weight_decay); }
  void operator()(const Adadelta& op) const { check_mean(op); }
  void operator()(const Adam& op) const { check_adam(op), demand_decay(op.weight_decay); }
  void operator()(const AdamW& op) const { check_adam(op), demand_decay(op.weight_decay); }
  void operator()(const KerasAdam& op) const { check_adam(op); }
};

/// Collects the numbers of an optimiser, by name.
struct Text {
  std::string name, numbers{};

  Text& with(const char* number, double value) {
    if (value != 0) numbers += (numbers.empty() ? "" : ", ") + std::string(number) + " " + shortest(value);
    return *this;
  }
  std::string text() const { return name + "(" + numbers + ")"; }
};

struct ToText {
  std::string operator()(const Sgd& op) const { return sgd("sgd", op).with("weight_decay", op.weight_decay).text(); }
  std::string operator()(const KerasSgd& op) const { return sgd("keras_sgd", op).text(); }
  std::string operator()(const RmsProp& op) const { return mean("rmsprop", op); }
  std::string operator()(const Adagrad& op) const {
    return Text{"adagrad"}.with("epsilon", op.epsilon).with("weight_decay", op.weight_decay).text();
  }
  std::string operator()(const Adadelta& op) const { return mean("adadelta", op); }
  std::string operator()(const Adam& op) const { return adam("adam", op).with("weight_decay", op.weight_decay).text(); }
  std::string operator()(const AdamW& op) const {
    return adam("adamw", op).with("weight_decay", op.weight_decay).text();
  }
  std::string operator()(const KerasAdam& op) const { return adam("keras_adam", op).text(); }

  template <class T>
  static Text sgd(const char* name, const T& op) {
    return Text{op.nesterov ? "nesterov_" + std::string(name) : name}.with("momentum", op.momentum);
  }
  template <class T>
  static std::string mean(const char* name, const T& op) {
    return Text{name}.with("rho", op.rho).with("epsilon", op.epsilon).with("weight_decay", op.weight_decay).text();
  }
  template <class T>
  static Text adam(const char* name, const T& op) {
    return Text{name}.with("beta1", op.beta1).with("beta2", op.beta2).with("epsilon", op.epsilon);
  }
};

}  // namespace

std::string_view to_string(TableUpdates updates) { return updates == TableUpdates::lazy ? "lazy" : "dense"; }

void check_lazy(const Optimiser& optimiser) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("lazy updates of embeddings: " + to_string(optimiser) + " " + why +
                     "; leave that out, or use dense updates");
  };
  std::visit(
      [&](const auto& op) {
        if constexpr (requires { op.momentum; })
          if (op.momentum > 0) refuse("has a momentum, which moves rows without a gradient too");
        if constexpr (requires { op.weight_decay; })
          if (op.weight_decay > 0) refuse("has a weight decay, which shrinks rows without a gradient too");
      },
      optimiser);
}

std::string to_string(const Optimiser& optimiser) { return std::visit(ToText{}, optimiser); }

void check_optimiser(const Optimiser& optimiser) { std::visit(Check{}, optimiser); }

NamedOptimiser named_optimiser(std::string_view name) {
  for (const Entry& entry : entries())
    if (entry.name == name) return entry.of;
  throw UsageError("no optimiser " + std::string(name) + "; " + near_names(name, optimiser_names()));
}

std::vector<std::string> optimiser_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string_view> state_names(const Optimiser& optimiser) {
  return std::visit(
      [](const auto& op) -> std::vector<std::string_view> {
        using T = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<T, Sgd> || std::is_same_v<T, KerasSgd>) {
          if (op.momentum == 0) return {};
          return {"velocity"};
        } else if constexpr (std::is_same_v<T, RmsProp>) {
          return {"mean_square"};
        } else if constexpr (std::is_same_v<T, Adagrad>) {
          return {"sum_of_squares"};
        } else if constexpr (std::is_same_v<T, Adadelta>) {
          return {"mean_square", "mean_square_update"};
        } else {
          return {"mean", "mean_square"};
        }
      },
      optimiser);
}

}  // namespace lamina
