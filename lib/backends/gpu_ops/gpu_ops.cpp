// Finds the op of a spec among those that are lowered alike.

#include "gpu_ops.h"

#include <variant>

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

}  // namespace lamina::LAMINA_CUDA_SPACE
