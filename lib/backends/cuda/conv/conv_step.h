#pragma once
// The step of an algorithm from its launchers, and the refusal of numbers above a limit.

#include <algorithm>
#include <string>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// One pass of a convolution by the launchers of an algorithm: a struct of kernels/conv, such as ConvImplicitGemm.
template <class Kernels>
Lowered::Step conv_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    const ConvGeometry g = geometry_of(c.op);
    const View<const T> x = empty_view<const T>(c.x), y = empty_view<const T>(c.y);
    switch (pass) {
      case Pass::backward_params:
        return launches(
            machine, {pass}, Kernels::name,
            [c, g](Stream stream, const Args& args) {
              const Masked<T> dy = masked_dy<T>(c, args);
              backward_bias(stream, c, args, dy);
              if (!args.dw.empty() && args.dw[0])
                Kernels::backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(),
                                          static_cast<T*>(args.workspace), c.add_dw);
            },
            std::max(Kernels::backward_weights_bytes(g, x, y), backward_bias_bytes(c)));
      case Pass::backward_data:
        return launches(
            machine, {pass}, Kernels::name,
            [c, g](Stream stream, const Args& args) {
              if (wanted(args, 0))
                Kernels::backward_data(stream, g, args.w[0].as<const T>(), masked_dy<T>(c, args), view<T>(args.dx[0]),
                                       c.add_dx, static_cast<T*>(args.workspace));
            },
            Kernels::backward_data_bytes(g, y, empty_view<T>(c.x)));
      default:
        return launches(
            machine, {pass}, Kernels::name,
            [c, g](Stream stream, const Args& args) {
              const ForwardInputs<T> in = begin_forward<T>(stream, c, args);
              Kernels::forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end,
                               static_cast<T*>(args.workspace));
              apply(stream, c.activation, args.y);
            },
            Kernels::forward_bytes(g, x, empty_view<T>(c.y)));
    }
  });
}

/// The refusal of a number above a limit: "gemm_1x1 takes up to 65535 groups, not 70000".
inline std::string limit(const std::string& name, const char* what, std::int64_t most, std::int64_t given) {
  return name + " takes up to " + std::to_string(most) + " " + what + ", not " + std::to_string(given);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
