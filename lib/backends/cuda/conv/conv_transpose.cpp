// Transposed convolution: the passes of the mirrored convolution, and the bias.

#include "lib/backends/common/conv_transpose.h"
#include "kernels/bias.h"
#include "kernels/moves/moves.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const ConvTranspose&, const Spec& spec, const Choice& choice, Machine& machine,
              const std::function<Lowered(const Spec&, const Choice&)>& lower_mirrored) {
  const Shape& y = spec.y.shape;
  return with_type(machine.backend, spec.y.dtype, [&]<class T>() {
    return lower_transposed(
        spec, choice,
        {.add_bias = launching(machine,
                               [](Stream stream, const Args& args) {
                                 add_bias(stream, args.w[1].as<const T>(), view<T>(args.y), false);
                               }),
         .bias_gradient = launching(
             machine,
             [adds = spec.adds_dw](Stream stream, const Args& args) {
               bias_gradient(stream, Masked<T>{view<const T>(args.dy), {}}, args.dw[1].as<T>(), adds, args.workspace);
             }),
         .bias_gradient_bytes = bias_gradient_bytes(y.c, y.n * y.plane()),
         .add = launching(machine, [](Stream stream, const Tensor& to,
                                      const Tensor& from) { copy(stream, view<const T>(from), view<T>(to), true); })},
        lower_mirrored);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
