// Convolution by its definition, and the code that all algorithms share.

#include "kernels/conv/conv_direct.h"
#include "kernels/bias.h"

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

ConvGeometry geometry_of(const Conv& op) {
  return {op.groups, op.kernel.h, op.kernel.w,   op.stride.h,  op.stride.w,
          op.pad.h,  op.pad.w,    op.dilation.h, op.dilation.w};
}

template <class T>
void backward_bias(Stream stream, const ConvUnit& c, const Args& args, const Masked<T>& dy) {
  if (c.op.bias && args.dw.size() > 1 && args.dw[1])
    bias_gradient(stream, dy, args.dw[1].as<T>(), c.add_dw, args.workspace);
}
template void backward_bias(Stream, const ConvUnit&, const Args&, const Masked<float>&);
template void backward_bias(Stream, const ConvUnit&, const Args&, const Masked<double>&);

std::size_t backward_bias_bytes(const ConvUnit& c) {
  return c.op.bias ? bias_gradient_bytes(c.op.channels, c.y.n * c.y.plane()) : 0;
}

Lowered::Step direct_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  const ConvGeometry g = geometry_of(c.op);
  return with_type(c.dtype, [&]<class T>() {
    const auto run = [=](Stream stream, const Args& args) {
      if (pass == Pass::forward) {
        const ForwardInputs<T> in = begin_forward<T>(stream, c, args);
        return conv_direct_forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end);
      }
      const Masked<T> dy = masked_dy<T>(c, args);
      if (pass == Pass::backward_data) {
        if (wanted(args, 0))
          conv_direct_backward_data(stream, g, args.w[0].as<const T>(), dy, view<T>(args.dx[0]), c.add_dx);
        return;
      }
      backward_bias(stream, c, args, dy);
      if (!args.dw.empty() && args.dw[0])
        conv_direct_backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(), c.add_dw);
    };
    return launches(machine, {pass}, "direct", run, pass == Pass::backward_params ? backward_bias_bytes(c) : 0);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
