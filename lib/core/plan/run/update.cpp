// An optimiser's update as the factors that a backend takes. lamina/optimiser.h has the formulas.

#include "update.h"

#include <variant>

namespace lamina::planner {
namespace {

struct Factors {
  double rate;

  UpdateFactors operator()(const Sgd& op) const {
    UpdateFactors u = momentum(op.momentum, op.nesterov);
    u.rate = rate;
    u.weight_decay = op.weight_decay;
    return u;
  }

  // With v' = -v this is v' = momentum v' + rate g, p -= v'.
  UpdateFactors operator()(const KerasSgd& op) const {
    UpdateFactors u = momentum(op.momentum, op.nesterov);
    u.rate = 1;
    u.gain = rate;
    return u;
  }

  UpdateFactors operator()(const RmsProp& op) const { return mean_square(UpdateFactors::Rule::rmsprop, op); }

  UpdateFactors operator()(const Adagrad& op) const {
    UpdateFactors u;
    u.rule = UpdateFactors::Rule::rmsprop;
    u.rate = rate;
    u.decay = 1;
    u.epsilon = op.epsilon;
    u.weight_decay = op.weight_decay;
    return u;
  }

  UpdateFactors operator()(const Adadelta& op) const { return mean_square(UpdateFactors::Rule::adadelta, op); }

  UpdateFactors operator()(const Adam& op) const {
    UpdateFactors u = moments(op);
    u.correction = UpdateFactors::Correction::adam;
    u.weight_decay = op.weight_decay;
    return u;
  }

  UpdateFactors operator()(const AdamW& op) const {
    UpdateFactors u = (*this)(Adam{op.beta1, op.beta2, op.epsilon, 0});
    u.shrink = 1 - rate * op.weight_decay;
    return u;
  }

  UpdateFactors operator()(const KerasAdam& op) const {
    UpdateFactors u = moments(op);
    u.correction = UpdateFactors::Correction::keras_adam;
    return u;
  }

 private:
  static UpdateFactors momentum(double momentum, bool nesterov) {
    UpdateFactors u;
    u.rule = UpdateFactors::Rule::sgd;
    u.nesterov = nesterov;
    u.decay = momentum;
    return u;
  }

  template <class T>
  UpdateFactors mean_square(UpdateFactors::Rule rule, const T& op) const {
    UpdateFactors u;
    u.rule = rule;
    u.rate = rate;
    u.decay = op.rho;
    u.gain = 1 - op.rho;
    u.epsilon = op.epsilon;
    u.weight_decay = op.weight_decay;
    return u;
  }

  template <class T>
  UpdateFactors moments(const T& op) const {
    UpdateFactors u;
    u.rate = rate;
    u.rule = UpdateFactors::Rule::adam;
    u.decay = op.beta1;
    u.gain = 1 - op.beta1;
    u.decay2 = op.beta2;
    u.gain2 = 1 - op.beta2;
    u.epsilon = op.epsilon;
    return u;
  }
};

}  // namespace

UpdateFactors update_factors(const Optimiser& optimiser, double learning_rate) {
  return std::visit(Factors{learning_rate}, optimiser);
}

}  // namespace lamina::planner
