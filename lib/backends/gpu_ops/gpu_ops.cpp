// Finds the op of a spec among those that are lowered alike; conversions of halves.

#include "gpu_ops.h"

#include <variant>

#include "kernels/moves/copy.h"

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

bool gpu_op_takes_halves(const Op& op) { return holds_any<Relu, Sigmoid, Tanh, Clip, HardSwish, Silu>(op); }

void convert(const Tensor& to, const Tensor& from, const Launcher& on) {
  const auto convert_by = [&]<class Half>(Half) {
    on.launch([&](Stream stream) {
      if (is_half(to.dtype)) return copy(stream, elements<const float>(from), elements<Half>(to), false);
      copy(stream, elements<const Half>(from), elements<float>(to), false);
    });
  };
  if (to.dtype == DType::f16 || from.dtype == DType::f16) return convert_by(F16{});
  convert_by(BF16{});
}

}  // namespace lamina::LAMINA_CUDA_SPACE
