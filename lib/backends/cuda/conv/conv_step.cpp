// The common parts of the steps of all algorithms of a convolution.

#include "conv_step.h"

#include "kernels/bias.h"

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

}  // namespace lamina::LAMINA_CUDA_SPACE
