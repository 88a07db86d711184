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
void backward_bias(Stream stream, const Conv& op, const Args& args, const Masked<T>& dy, bool adds) {
  if (op.bias && args.dw.size() > 1 && args.dw[1]) bias_gradient(stream, dy, args.dw[1].as<T>(), adds, args.workspace);
}
template void backward_bias(Stream, const Conv&, const Args&, const Masked<float>&, bool);
template void backward_bias(Stream, const Conv&, const Args&, const Masked<double>&, bool);

std::size_t backward_bias_bytes(const Conv& op, const Spec& spec) {
  return op.bias ? bias_gradient_bytes(op.channels, spec.y.shape.n * spec.y.shape.plane()) : 0;
}

Lowered::Step direct_step(const Conv& op, const Spec& spec, Pass pass, Machine& machine) {
  const bool relu = ends_in_relu(spec), add_dx = adds_dx(spec, 0), add_dw = spec.adds_dw;
  const ConvGeometry g = geometry_of(op);
  const ConvForward forward = conv_forward(op, spec);
  return with_type(spec.y.dtype, [&]<class T>() {
    const auto run = [=](Stream stream, const Args& args) {
      if (pass == Pass::forward) {
        const ForwardInputs<T> in = begin_forward<T>(stream, forward, args);
        return conv_direct_forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end);
      }
      const Masked<T> dy = masked_dy<T>(args, relu);
      if (pass == Pass::backward_data) {
        if (wanted(args, 0))
          conv_direct_backward_data(stream, g, args.w[0].as<const T>(), dy, view<T>(args.dx[0]), add_dx);
        return;
      }
      backward_bias(stream, op, args, dy, add_dw);
      if (!args.dw.empty() && args.dw[0])
        conv_direct_backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(), add_dw);
    };
    return launches(machine, {pass}, "direct", run, pass == Pass::backward_params ? backward_bias_bytes(op, spec) : 0);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
