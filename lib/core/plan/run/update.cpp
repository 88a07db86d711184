// An optimiser's update as the factors that a backend takes. lamina/optimiser.h has the formulas.

#include "update.h"

#include <utility>
#include <variant>

namespace lamina::planner {
namespace {

/// What is an optimiser's own, over the numbers that optimisers of several kinds have.
struct Own {
  UpdateFactors& u;

  void operator()(const Sgd&) const {}
  /// With v' = -v this is v' = momentum v' + rate g, p -= v'.
  void operator()(const KerasSgd&) const { u.gain = std::exchange(u.rate, 1); }
  void operator()(const RmsProp&) const { u.rule = UpdateFactors::Rule::rmsprop; }
  void operator()(const Adagrad&) const {
    u.rule = UpdateFactors::Rule::rmsprop;
    u.decay = 1;
  }
  void operator()(const Adadelta&) const { u.rule = UpdateFactors::Rule::adadelta; }
  void operator()(const Adam&) const {}
  void operator()(const AdamW&) const { u.shrink = 1 - u.rate * std::exchange(u.weight_decay, 0); }
  void operator()(const KerasAdam&) const { u.correction = UpdateFactors::Correction::keras_adam; }
};

}  // namespace

UpdateFactors update_factors(const Optimiser& optimiser, double learning_rate) {
  UpdateFactors u;
  u.rate = learning_rate;
  const auto set = [&](const auto& op) {
    if constexpr (requires { op.epsilon; }) u.epsilon = op.epsilon;
    if constexpr (requires { op.weight_decay; }) u.weight_decay = op.weight_decay;
    if constexpr (requires { op.momentum; }) {
      u.rule = UpdateFactors::Rule::sgd;
      u.nesterov = op.nesterov;
      u.decay = op.momentum;
    } else if constexpr (requires { op.rho; }) {
      u.decay = op.rho;
      u.gain = 1 - op.rho;
    } else if constexpr (requires { op.beta1; }) {
      u.rule = UpdateFactors::Rule::adam;
      u.correction = UpdateFactors::Correction::adam;
      u.decay = op.beta1;
      u.gain = 1 - op.beta1;
      u.decay2 = op.beta2;
      u.gain2 = 1 - op.beta2;
    }
    Own{u}(op);
  };
  std::visit(set, optimiser);
  return u;
}

}  // namespace lamina::planner
