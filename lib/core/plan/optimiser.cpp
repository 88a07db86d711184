// The optimisers by name, their state, the ranges of their numbers, and their updates as factors for a backend.

#include "lamina/optimiser.h"

#include <array>
#include <cmath>
#include <utility>

#include "lamina/error.h"
#include "lib/core/plan/run/bind.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

struct Entry {
  std::string_view name;
  NamedOptimiser of;
};

constexpr Entry entries[] = {
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
};

/// The word for an optimiser, the last parts of the names of its state, and the rule of its updates.
struct Kind {
  std::string_view word;
  std::vector<std::string_view> state;
  UpdateFactors::Rule rule;
  UpdateFactors::Correction correction = UpdateFactors::Correction::none;
};

const Kind& kind_of(const Optimiser& optimiser) {
  using enum UpdateFactors::Rule;
  using Correction = UpdateFactors::Correction;
  static const std::array<Kind, std::variant_size_v<Optimiser>> kinds = {{
      // in the order of the variant
      {"sgd", {"velocity"}, sgd},
      {"keras_sgd", {"velocity"}, sgd},
      {"rmsprop", {"mean_square"}, rmsprop},
      {"adagrad", {"sum_of_squares"}, rmsprop},
      {"adadelta", {"mean_square", "mean_square_update"}, adadelta},
      {"adam", {"mean", "mean_square"}, adam, Correction::adam},
      {"adamw", {"mean", "mean_square"}, adam, Correction::adam},
      {"keras_adam", {"mean", "mean_square"}, adam, Correction::keras_adam},
  }};
  return kinds[optimiser.index()];
}

/// Calls visit(name, value) for each number of an optimiser, in the order of its text. Allocates nothing.
template <class Visit>
void for_numbers(const Optimiser& optimiser, const Visit& visit) {
  std::visit(
      [&](const auto& op) {
        if constexpr (requires { op.momentum; }) visit("momentum", op.momentum);
        if constexpr (requires { op.rho; }) visit("rho", op.rho);
        if constexpr (requires { op.beta1; }) visit("beta1", op.beta1);
        if constexpr (requires { op.beta2; }) visit("beta2", op.beta2);
        if constexpr (requires { op.epsilon; }) visit("epsilon", op.epsilon);
        if constexpr (requires { op.weight_decay; }) visit("weight_decay", op.weight_decay);
      },
      optimiser);
}

bool is_nesterov(const Optimiser& optimiser) {
  const auto* const sgd = std::get_if<Sgd>(&optimiser);
  const auto* const keras = std::get_if<KerasSgd>(&optimiser);
  return (sgd != nullptr && sgd->nesterov) || (keras != nullptr && keras->nesterov);
}

}  // namespace

std::string_view to_string(TableUpdates updates) { return updates == TableUpdates::lazy ? "lazy" : "dense"; }

void check_lazy(const Optimiser& optimiser) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("lazy updates of embeddings: " + to_string(optimiser) + " " + why +
                     "; remove that number, or use dense updates");
  };
  for_numbers(optimiser, [&](std::string_view name, double value) {
    if (name == "momentum" && value > 0) refuse("has a momentum, which moves rows without a gradient too");
    if (name == "weight_decay" && value > 0) refuse("has a weight decay, which shrinks rows without a gradient too");
  });
}

std::string to_string(const Optimiser& optimiser) {
  std::string numbers;
  for_numbers(optimiser, [&](std::string_view name, double value) {
    if (value != 0) numbers += (numbers.empty() ? "" : ", ") + std::string(name) + " " + shortest(value);
  });
  return (is_nesterov(optimiser) ? "nesterov_" : "") + std::string(kind_of(optimiser).word) + "(" + numbers + ")";
}

void check_optimiser(const Optimiser& optimiser) {
  for_numbers(optimiser, [&](std::string_view name, double value) {
    const auto demand = [&](bool holds, const char* range) {
      if (!holds)
        throw UsageError("optimiser: " + std::string(name) + " is " + shortest(value) + "; it should be " + range);
    };
    if (name == "epsilon")
      demand(value > 0 && std::isfinite(value), "above 0");
    else if (name == "weight_decay")
      demand(value >= 0 && std::isfinite(value), "at least 0");
    else
      demand(value >= 0 && value < 1, "at least 0 and below 1");
    if (name == "momentum" && is_nesterov(optimiser)) demand(value > 0, "above 0 for Nesterov's rule");
  });
}

NamedOptimiser named_optimiser(std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.of;
  throw UsageError("no optimiser " + std::string(name) + "; " + near_names(name, optimiser_names()));
}

std::vector<std::string> optimiser_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string_view> state_names(const Optimiser& optimiser) {
  bool is_plain = false;
  for_numbers(optimiser, [&](std::string_view name, double value) { is_plain |= name == "momentum" && value == 0; });
  return is_plain ? std::vector<std::string_view>() : kind_of(optimiser).state;
}

UpdateFactors planner::update_factors(const Optimiser& optimiser, double learning_rate) {
  UpdateFactors u;
  u.rule = kind_of(optimiser).rule;
  u.correction = kind_of(optimiser).correction;
  u.nesterov = is_nesterov(optimiser);
  u.rate = learning_rate;
  for_numbers(optimiser, [&u](std::string_view name, double value) {
    if (name == "momentum" || name == "rho" || name == "beta1") u.decay = value;
    if (name == "rho" || name == "beta1") u.gain = 1 - value;
    if (name == "beta2") u.decay2 = value;
    if (name == "beta2") u.gain2 = 1 - value;
    if (name == "epsilon") u.epsilon = value;
    if (name == "weight_decay") u.weight_decay = value;
  });
  // With v' = -v the update of KerasSgd is v' = momentum v' + rate g, p -= v'.
  if (std::holds_alternative<KerasSgd>(optimiser)) u.gain = std::exchange(u.rate, 1);
  if (std::holds_alternative<Adagrad>(optimiser)) u.decay = 1;
  if (std::holds_alternative<AdamW>(optimiser)) u.shrink = 1 - u.rate * std::exchange(u.weight_decay, 0);
  return u;
}

}  // namespace lamina
