// Finds the op of a spec among those that are lowered alike. An optimiser's update of all parameters of a plan, and the
// loss scale before it.

#include "gpu_ops.h"

#include <variant>

#include "kernels/update.h"
#include "lib/backends/common/update_numbers.h"

namespace lamina::LAMINA_CUDA_SPACE {

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
  with_type(on.backend, u.dtype, [&]<class T>() {
    on.launch([&](Stream stream) {
      update<T>(stream, rule_of<UpdateRule>(u), numbers_of<UpdateNumbers>(u), row_of<UpdateRow<T>, T>(u));
    });
  });
}

void run_check_overflow(const UpdateTensors& all, const Launcher& on) {
  using Limits = std::numeric_limits<float>;
  on.launch([&](Stream stream) {
    check_overflow(stream, static_cast<const float*>(all.g), all.count, state_of<LossScaleState>(all.loss_scale),
                   {Limits::min(), Limits::max(), LossScale::growth});
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
