// y = tanh(x). The gradient is computed from y alone.

#include "../../../../kernels/tanh.h"

#include "smooth.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Tanh&, const Spec& spec, const Choice&, Machine& machine) {
  return lower_smooth(
      spec, machine, [](auto... arguments) { tanh_forward(arguments...); },
      [](auto... arguments) { tanh_backward(arguments...); });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
