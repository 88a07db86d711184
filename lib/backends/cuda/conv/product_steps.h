#pragma once
// The steps of the algorithms that compute a convolution as a product, and the limits that they report.

#include <algorithm>
#include <string>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// One pass of a convolution by the kernels of an algorithm. `Algorithm` has
///   name
///   forward, backward_data, backward_weights                   the launchers
///   forward_bytes, backward_data_bytes, backward_weights_bytes  their workspaces
template <class Algorithm>
Lowered::Step product_step(const ConvUnit& c, Pass pass, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    const ConvGeometry g = geometry_of(c.op);
    const View<const T> x = empty_view<const T>(c.x), y = empty_view<const T>(c.y);
    switch (pass) {
      case Pass::backward_params:
        return launches(
            machine, {pass}, Algorithm::name,
            [c, g](Stream stream, const Args& args) {
              const Masked<T> dy = masked_dy<T>(c, args);
              backward_bias(stream, c, args, dy);
              if (!args.dw.empty() && args.dw[0])
                Algorithm::backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(),
                                            static_cast<T*>(args.workspace), c.add_dw);
            },
            std::max(Algorithm::backward_weights_bytes(g, x, y), backward_bias_bytes(c)));
      case Pass::backward_data:
        return launches(
            machine, {pass}, Algorithm::name,
            [c, g](Stream stream, const Args& args) {
              if (wanted(args, 0))
                Algorithm::backward_data(stream, g, args.w[0].as<const T>(), masked_dy<T>(c, args), view<T>(args.dx[0]),
                                         c.add_dx, static_cast<T*>(args.workspace));
            },
            Algorithm::backward_data_bytes(g, y, empty_view<T>(c.x)));
      default:
        return launches(
            machine, {pass}, Algorithm::name,
            [c, g](Stream stream, const Args& args) {
              const ForwardInputs<T> in = begin_forward<T>(stream, c, args);
              Algorithm::forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end,
                                 static_cast<T*>(args.workspace));
            },
            Algorithm::forward_bytes(g, x, empty_view<T>(c.y)));
    }
  });
}

/// The refusal of a number above a limit: "gemm_1x1 takes up to 65535 groups, not 70000".
template <class Algorithm>
std::string limit(const char* what, std::int64_t most, std::int64_t given) {
  return std::string(Algorithm::name) + " takes up to " + std::to_string(most) + " " + what + ", not " +
         std::to_string(given);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
