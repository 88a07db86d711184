// Calls the lowering of a spec's op. Launches an optimiser's update of all parameters of a plan and, before it, the
// check of the loss scale.

#include "gpu_ops.h"

#include <cstddef>
#include <variant>

#include "kernels/update.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr bool is_same_rule(UpdateFactors::Rule rule, UpdateRule its) {
  return static_cast<int>(rule) == static_cast<int>(its);
}
static_assert(is_same_rule(UpdateFactors::Rule::sgd, UpdateRule::sgd) &&
              is_same_rule(UpdateFactors::Rule::rmsprop, UpdateRule::rmsprop) &&
              is_same_rule(UpdateFactors::Rule::adadelta, UpdateRule::adadelta) &&
              is_same_rule(UpdateFactors::Rule::adam, UpdateRule::adam));

/// A loss scale as the kernels see it.
LossScaleState* state_of(LossScale* scale) {
  using State = LossScaleState;
  static_assert(sizeof(State) == sizeof(LossScale) && offsetof(State, inverse) == offsetof(LossScale, inverse) &&
                offsetof(State, updates) == offsetof(LossScale, updates) &&
                offsetof(State, good) == offsetof(LossScale, good) &&
                offsetof(State, skips) == offsetof(LossScale, skips));
  return reinterpret_cast<State*>(scale);
}

}  // namespace

Lowered lower_gpu_op(const Spec& spec, const Launcher& on) {
  return std::visit(
      [&](const auto& op) -> Lowered {
        if constexpr (requires { lower(op, spec, on); }) {
          return lower(op, spec, on);
        } else {
          throw Unsupported(on.backend + ": " + to_string(spec.op) + " has no kernels that all backends share");
        }
      },
      spec.op);
}

void run_update(const Update& u, const Launcher& on) {
  const UpdateNumbers numbers = {u.nesterov,       u.clears_gradient,
                                 u.gradient_scale, u.clip_norm,
                                 u.weight_decay,   u.shrink,
                                 u.rate,           u.decay,
                                 u.gain,           u.decay2,
                                 u.gain2,          u.epsilon,
                                 u.root_scale,     static_cast<UpdateCorrection>(u.correction)};
  with_type(on.backend, u.dtype, [&]<class T>() {
    const auto row = [](void* data) { return static_cast<T*>(data); };
    const UpdateRow<T> rows = {u.count,
                               row(u.p),
                               row(u.g),
                               row(u.first),
                               row(u.second),
                               u.sums,
                               Update::norm_slices,
                               u.lazy_row,
                               state_of(u.loss_scale)};
    on.launch([&](Stream stream) { update<T>(stream, static_cast<UpdateRule>(u.rule), numbers, rows); });
  });
}

void run_check_overflow(const UpdateTensors& all, const Launcher& on) {
  using Limits = std::numeric_limits<float>;
  on.launch([&](Stream stream) {
    check_overflow(stream, static_cast<const float*>(all.g), all.count, state_of(all.loss_scale),
                   {Limits::min(), Limits::max(), LossScale::growth});
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
