// The weight gradient of a convolution by Winograd's F(4x4, 3x3).

#include "conv.h"
#include "conv_winograd_4x4.h"
#include "kernels/conv/conv_implicit_gemm.h"
#include "kernels/winograd/conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
WinogradWeights<T> empty_weights(const ConvUnit& c) {
  WinogradWeights<T> conv;
  conv.groups = c.op.groups;
  conv.x = empty_view<const T>(c.x);
  conv.dy.dy = empty_view<const T>(c.y);
  conv.pad_h = c.op.pad.h;
  conv.pad_w = c.op.pad.w;
  conv.adds = c.add_dw;
  return conv;
}

}  // namespace

bool winograd_4x4_weights_pay(const ConvUnit& c) {
  const WinogradWeights<float> conv = empty_weights<float>(c);
  return winograd_4x4_weights_ranges(conv).cycles <
         conv_implicit_gemm_weights_cycles(geometry_of(c.op), conv.x, conv.dy.dy);
}

Lowered::Step winograd_4x4_weights_step(const ConvUnit& c, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    const WinogradWeights<T> empty = empty_weights<T>(c);
    return launches(
        machine, {Pass::backward_params}, winograd_4x4_name,
        [c, empty](Stream stream, const Args& args) {
          WinogradWeights<T> conv = empty;
          conv.dy = masked_dy<T>(c, args);
          backward_bias(stream, c, args, conv.dy);
          if (args.dw.empty() || !args.dw[0]) return;
          conv.x = view<const T>(args.x[0]);
          conv.dw = args.dw[0].as<T>();
          winograd_4x4_weights(stream, conv, static_cast<T*>(args.workspace));
        },
        std::max(winograd_4x4_weights_bytes(empty), backward_bias_bytes(c)));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
