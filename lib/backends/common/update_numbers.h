#pragma once
// An optimiser's update in the form of the kernels, for backends that launch them. `Rule`, `Numbers` and `Row` are the
// types of kernels/update.h for the device or for the host.

#include <cstddef>
#include <type_traits>

#include "lamina/backend.h"

namespace lamina {

template <class Rule>
Rule rule_of(const Update& update) {
  switch (update.rule) {
    case Update::Rule::sgd: return Rule::sgd;
    case Update::Rule::rmsprop: return Rule::rmsprop;
    case Update::Rule::adadelta: return Rule::adadelta;
    case Update::Rule::adam: return Rule::adam;
  }
  return Rule::sgd;
}

template <class Numbers>
Numbers numbers_of(const Update& u) {
  return {u.nesterov,       u.clears_gradient,
          u.gradient_scale, u.clip_norm,
          u.weight_decay,   u.shrink,
          u.rate,           u.decay,
          u.gain,           u.decay2,
          u.gain2,          u.epsilon,
          u.root_scale,     static_cast<decltype(Numbers::correction)>(u.correction)};
}

/// A loss scale as the kernels see it.
template <class State>
State* state_of(LossScale* scale) {
  static_assert(sizeof(State) == sizeof(LossScale) && offsetof(State, inverse) == offsetof(LossScale, inverse) &&
                offsetof(State, updates) == offsetof(LossScale, updates) &&
                offsetof(State, good) == offsetof(LossScale, good) &&
                offsetof(State, skips) == offsetof(LossScale, skips));
  return reinterpret_cast<State*>(scale);
}

template <class Row, class T>
Row row_of(const Update& u) {
  const auto row = [](void* data) { return static_cast<T*>(data); };
  return {u.count,
          row(u.p),
          row(u.g),
          row(u.first),
          row(u.second),
          u.sums,
          Update::norm_slices,
          u.lazy_row,
          state_of<std::remove_pointer_t<decltype(Row::loss_scale)>>(u.loss_scale)};
}

}  // namespace lamina
