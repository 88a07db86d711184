#pragma once
// How parameters follow their gradients: optimisers, by PyTorch's formulas and by Keras', and learning rates over time.
//
// p is a parameter, g its gradient, T the number of the update, from 1. State starts at zero. Keras means the formulas
// of Keras 2.0 and 2.1. With a `weight_decay`, g is first replaced by g + weight_decay p.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// v = momentum v + g;  p -= rate v, or with `nesterov`  p -= rate (g + momentum v).
struct Sgd {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool operator==(const Sgd&) const = default;
};

/// v = momentum v - rate g;  p += v, or with `nesterov`  p += momentum v - rate g. It differs from Sgd if the rate
/// changes: v holds the rates of earlier updates.
struct KerasSgd {
  double momentum = 0;
  bool nesterov = false;
  bool operator==(const KerasSgd&) const = default;
};

/// a = rho a + (1 - rho) g^2;  p -= rate g / (sqrt(a) + epsilon). PyTorch calls rho alpha. Keras has the same formula
/// with rho 0.9.
struct RmsProp {
  double rho = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool operator==(const RmsProp&) const = default;
};

/// a = a + g^2;  p -= rate g / (sqrt(a) + epsilon). Keras has the same formula with epsilon 1e-8. PyTorch's `lr_decay`
/// and Keras' `decay` are inverse_time().
struct Adagrad {
  double epsilon = 1e-10;
  double weight_decay = 0;
  bool operator==(const Adagrad&) const = default;
};

/// a = rho a + (1 - rho) g^2;  u = g sqrt(d + epsilon) / sqrt(a + epsilon);  p -= rate u;  d = rho d + (1 - rho) u^2.
/// Keras has the same formula with rho 0.95 and epsilon 1e-8.
struct Adadelta {
  double rho = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
  bool operator==(const Adadelta&) const = default;
};

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p -= rate / (1 - beta1^T) m / (sqrt(v) / sqrt(1 - beta2^T) + epsilon).
/// Every element of a parameter is updated in every step, whether or not its gradient is zero ("dense").
struct Adam {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool operator==(const Adam&) const = default;
};

/// p *= 1 - rate weight_decay; then as Adam. The weight decay does not change g.
struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  bool operator==(const AdamW&) const = default;
};

/// m and v as Adam;  p -= rate sqrt(1 - beta2^T) / (1 - beta1^T) m / (sqrt(v) + epsilon).
struct KerasAdam {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool operator==(const KerasAdam&) const = default;
};

/// Which rows of an embedding's table an update changes. With `dense`, it changes all rows: the means also decay in
/// rows whose ids did not occur, and these rows move on. With `lazy`, it changes only rows with a gradient that is not
/// zero in some feature; other rows keep their parameters and state. So a lazy KerasAdam is PyTorch's SparseAdam. All
/// other parameters are updated densely.
enum class TableUpdates : std::uint8_t { dense, lazy };
LAMINA_API std::string_view to_string(TableUpdates);

using Optimiser = std::variant<Sgd, KerasSgd, RmsProp, Adagrad, Adadelta, Adam, AdamW, KerasAdam>;

/// An optimiser with the defaults of its source, and the learning rate that the source starts with.
struct NamedOptimiser {
  Optimiser optimiser;
  double learning_rate;
};

/// "sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamw" as in PyTorch; "keras_sgd", "keras_rmsprop",
/// "keras_adagrad", "keras_adadelta", "keras_adam" as in Keras. Throws UsageError with near names.
LAMINA_API NamedOptimiser named_optimiser(std::string_view name);
LAMINA_API std::vector<std::string> optimiser_names();

/// "adam(beta1 0.9, beta2 0.999, epsilon 1e-08)": every number that is not 0.
LAMINA_API std::string to_string(const Optimiser&);

/// Last part of the names of an optimiser's state. Each names a block as large as the parameters.
/// Sgd, KerasSgd: "velocity" if it has a momentum; RmsProp: "mean_square"; Adagrad: "sum_of_squares"; Adadelta:
/// "mean_square", "mean_square_update"; Adam, AdamW, KerasAdam: "mean", "mean_square".
LAMINA_API std::vector<std::string_view> state_names(const Optimiser&);

/// Throws UsageError, with the reason, for an optimiser that has no lazy form: momentum and weight decay also change
/// rows without a gradient.
LAMINA_API void check_lazy(const Optimiser&);

/// Throws UsageError for a number out of range, naming it. Momentum, rho and beta are from 0 to below 1, epsilon is
/// above 0, weight decay is at least 0, and Nesterov needs a momentum.
LAMINA_API void check_optimiser(const Optimiser&);

// ---- Learning rates -------------------------------------------------------------------------------------------------

/// The learning rate of an update, given the number of updates before it. It must be valid for every number: Trainer
/// evaluates it up to 2^40 to recognise the schedule of a checkpoint.
using Schedule = std::function<double(std::uint64_t updates)>;

LAMINA_API Schedule constant_rate(double rate);
/// rate / (1 + decay updates): Keras' `decay`.
LAMINA_API Schedule inverse_time(double rate, double decay);
/// rate x factor^floor(updates / every): PyTorch's StepLR. Throws UsageError if `every` is below 1.
LAMINA_API Schedule step_decay(double rate, double factor, std::uint64_t every);
/// From `rate` to `last` along half a cosine over `over` updates, then `last`: PyTorch's CosineAnnealingLR.
LAMINA_API Schedule cosine(double rate, double last, std::uint64_t over);
/// Rises linearly to `then` over `over` updates: update u has (u + 1) / (over + 1) of then(u); from `over` on it is
/// then(u).
LAMINA_API Schedule warm_up(std::uint64_t over, Schedule then);

}  // namespace lamina
