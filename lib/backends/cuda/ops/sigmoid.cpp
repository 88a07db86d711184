// y = 1 / (1 + exp(-x)). The gradient is computed from y alone.

#include "../../../../kernels/sigmoid.h"

#include "smooth.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Sigmoid&, const Spec& spec, const Choice&, Machine& machine) {
  return lower_smooth(
      spec, machine, [](auto... arguments) { sigmoid_forward(arguments...); },
      [](auto... arguments) { sigmoid_backward(arguments...); });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
