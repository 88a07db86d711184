// An optimiser's update as the numbers that a backend takes. lamina/optimiser.h has the formulas.

#include "update.h"

#include <cmath>
#include <variant>

namespace lamina::planner {
namespace {

struct Factors {
  double rate;
  double number;  // of the update, from 1

  Update operator()(const Sgd& op) const {
    Update u = momentum(op.momentum, op.nesterov);
    u.rate = rate;
    u.weight_decay = op.weight_decay;
    return u;
  }

  // With v' = -v: v' = momentum v' + rate g, p -= v'.
  Update operator()(const KerasSgd& op) const {
    Update u = momentum(op.momentum, op.nesterov);
    u.rate = 1;
    u.gain = rate;
    return u;
  }

  Update operator()(const RmsProp& op) const { return mean_square(Update::Rule::rmsprop, op); }

  Update operator()(const Adagrad& op) const {
    Update u;
    u.rule = Update::Rule::rmsprop;
    u.rate = rate;
    u.decay = 1;
    u.epsilon = op.epsilon;
    u.weight_decay = op.weight_decay;
    return u;
  }

  Update operator()(const Adadelta& op) const { return mean_square(Update::Rule::adadelta, op); }

  Update operator()(const Adam& op) const {
    Update u = moments(op);
    u.rate = rate / (1 - std::pow(op.beta1, number));
    u.root_scale = 1 / std::sqrt(1 - std::pow(op.beta2, number));
    u.weight_decay = op.weight_decay;
    return u;
  }

  Update operator()(const AdamW& op) const {
    Update u = (*this)(Adam{op.beta1, op.beta2, op.epsilon, 0});
    u.shrink = 1 - rate * op.weight_decay;
    return u;
  }

  Update operator()(const KerasAdam& op) const {
    Update u = moments(op);
    u.rate = rate * std::sqrt(1 - std::pow(op.beta2, number)) / (1 - std::pow(op.beta1, number));
    return u;
  }

 private:
  static Update momentum(double momentum, bool nesterov) {
    Update u;
    u.rule = Update::Rule::sgd;
    u.nesterov = nesterov;
    u.decay = momentum;
    return u;
  }

  template <class T>
  Update mean_square(Update::Rule rule, const T& op) const {
    Update u;
    u.rule = rule;
    u.rate = rate;
    u.decay = op.rho;
    u.gain = 1 - op.rho;
    u.epsilon = op.epsilon;
    u.weight_decay = op.weight_decay;
    return u;
  }

  template <class T>
  static Update moments(const T& op) {
    Update u;
    u.rule = Update::Rule::adam;
    u.decay = op.beta1;
    u.gain = 1 - op.beta1;
    u.decay2 = op.beta2;
    u.gain2 = 1 - op.beta2;
    u.epsilon = op.epsilon;
    return u;
  }
};

}  // namespace

Update update_of(const Optimiser& optimiser, double learning_rate, std::uint64_t number) {
  return std::visit(Factors{learning_rate, static_cast<double>(number)}, optimiser);
}

Update placed(const Update& rule, const Update& row) {
  Update update = rule;
  update.lazy_row = row.lazy_row;
  update.dtype = row.dtype;
  update.count = row.count;
  update.p = row.p;
  update.g = row.g;
  update.first = row.first;
  update.second = row.second;
  update.sums = row.sums;
  return update;
}

}  // namespace lamina::planner
