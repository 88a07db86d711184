// Convolution whose groups have one channel, by sums in registers.

#include "kernels/conv/conv_depthwise.h"

#include <algorithm>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

std::string depthwise_refusal(const ConvUnit& c, Pass, Machine&) {
  const std::string self = "depthwise";
  if (c.group_channels() != 1)
    return self + " is for groups of one channel, not of " + std::to_string(c.group_channels());
  if (has_conv_depthwise(geometry_of(c.op))) return {};
  return self + " takes kernels of 3x3, 5x5 and 7x7 with a stride of 1 or 2 both ways and without dilation";
}

Lowered::Step depthwise_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  const ConvGeometry g = geometry_of(c.op);
  return with_type(c.dtype, [&]<class T>() {
    const auto run = [=](Stream stream, const Args& args) {
      if (pass == Pass::forward) {
        const ForwardInputs<T> in = begin_forward<T>(stream, c, args);
        return conv_depthwise_forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end);
      }
      const Masked<T> dy = masked_dy<T>(c, args);
      if (pass == Pass::backward_data) {
        if (wanted(args, 0))
          conv_depthwise_backward_data(stream, g, args.w[0].as<const T>(), dy, view<T>(args.dx[0]), c.add_dx);
        return;
      }
      backward_bias(stream, c, args, dy);
      if (!args.dw.empty() && args.dw[0])
        conv_depthwise_backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(), c.add_dw,
                                        args.workspace);
    };
    const std::size_t bytes =
        pass == Pass::backward_params
            ? std::max(backward_bias_bytes(c), conv_depthwise_weights_bytes(g, c.y.c, c.y.n * c.y.plane()))
            : 0;
    return launches(machine, {pass}, "depthwise", run, bytes);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
