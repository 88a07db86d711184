// The weight gradient of a convolution by Winograd's F(4x4, 3x3).

#include "conv.h"
#include "conv_winograd_4x4.h"
#include "kernels/conv/conv_implicit_gemm.h"
#include "kernels/winograd/conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
WinogradWeights<T> empty_weights(const Conv& op, const Spec& spec) {
  WinogradWeights<T> conv;
  conv.groups = op.groups;
  conv.x = empty_view<const T>(spec.x[0].shape);
  conv.dy.dy = empty_view<const T>(spec.y.shape);
  conv.pad_h = op.pad.h;
  conv.pad_w = op.pad.w;
  conv.adds = spec.adds_dw;
  return conv;
}

}  // namespace

bool winograd_4x4_weights_pay(const Conv& op, const Spec& spec) {
  if (spec.y.dtype != DType::f32 || !winograd_4x4_refusal(op, spec).empty()) return false;
  const WinogradWeights<float> conv = empty_weights<float>(op, spec);
  return winograd_4x4_weights_ranges(conv).cycles <
         conv_implicit_gemm_weights_cycles(geometry_of(op), conv.x, conv.dy.dy);
}

Lowered::Step winograd_4x4_weights_step(const Conv& op, const Spec& spec, Machine& machine) {
  return with_type(spec.y.dtype, [&]<class T>() {
    const WinogradWeights<T> empty = empty_weights<T>(op, spec);
    return launches(
        machine, {Pass::backward_params}, winograd_4x4_name,
        [op, empty, relu = ends_in_relu(spec)](Stream stream, const Args& args) {
          WinogradWeights<T> conv = empty;
          conv.dy = masked_dy<T>(args, relu);
          backward_bias(stream, op, args, conv.dy, conv.adds);
          if (args.dw.empty() || !args.dw[0]) return;
          conv.x = view<const T>(args.x[0]);
          conv.dw = args.dw[0].as<T>();
          winograd_4x4_weights(stream, conv, static_cast<T*>(args.workspace));
        },
        std::max(winograd_4x4_weights_bytes(empty), backward_bias_bytes(op, spec)));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
