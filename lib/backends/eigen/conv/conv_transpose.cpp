// Transposed convolution: the passes of the mirrored convolution, and the bias.

#include "lib/backends/common/conv_transpose.h"

#include "conv.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

Lowered lower(const ConvTranspose&, const Spec& spec, const Choice& choice, const Context& context) {
  ConvUnit its_dy{.op = {.channels = 0, .kernel = 1}, .x = {}, .y = spec.y.shape};
  its_dy.add_dw = spec.adds_dw;
  ThreadPool& pool = context.pool;
  return with_type(spec.y.dtype, [&]<class T>() {
    return lower_transposed(
        spec, choice,
        {.add_bias =
             [&pool](const Args& args) {
               const T* const bias = args.w[1].as<T>();
               split_planes(pool, args.y.shape, [&](std::int64_t n, std::int64_t k) {
                 T* const y = image<T>(args.y, n) + k * args.y.shape.plane();
                 for (std::int64_t i = 0; i < args.y.shape.plane(); ++i) y[i] += bias[k];
               });
             },
         .bias_gradient = [&pool, its_dy](const Args& args) { bias_gradient<T>(its_dy, args, pool); },
         .bias_gradient_bytes = 0,
         .add =
             [&pool](const Tensor& to, const Tensor& from) {
               split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
                 put(image<T>(to, n) + first, image<const T>(from, n) + first, last - first, true);
               });
             }},
        [&](const Spec& of, const Choice& by) { return Chooser(conv_table, of, context, context.halves).lower(by); });
  });
}

}  // namespace lamina::eigen
