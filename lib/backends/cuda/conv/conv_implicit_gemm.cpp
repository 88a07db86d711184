// Convolution as a product whose factors are gathered from the image: kernels/conv/conv_implicit_gemm.cu.

#include "../../../../kernels/conv/conv_implicit_gemm.h"

#include <algorithm>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr const char* name = "implicit_gemm";

template <class T>
Lowered::Step weights_step(const Conv& op, const Spec& spec, Machine& machine) {
  const ConvGeometry g = geometry_of(op);
  const std::size_t bytes = std::max(
      conv_implicit_gemm_partial_bytes<T>(g, empty_view<const T>(spec.x[0].shape), empty_view<const T>(spec.y.shape)),
      backward_bias_bytes(op, spec));
  return launches(
      machine, {Pass::backward_params}, name,
      [op, g, relu = ends_in_relu(spec), adds = spec.adds_dw](Stream stream, const Args& args) {
        const Masked<T> dy = masked_dy<T>(args, relu);
        backward_bias(stream, op, args, dy, adds);
        if (!args.dw.empty() && args.dw[0])
          conv_implicit_gemm_backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(),
                                              static_cast<T*>(args.workspace), adds);
      },
      bytes);
}

template <class T>
Lowered::Step data_step(const Conv& op, const Spec& spec, Machine& machine) {
  const ConvGeometry g = geometry_of(op);
  return launches(
      machine, {Pass::backward_data}, name,
      [g, relu = ends_in_relu(spec), adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
        if (wanted(args, 0))
          conv_implicit_gemm_backward_data(stream, g, args.w[0].as<const T>(), masked_dy<T>(args, relu),
                                           view<T>(args.dx[0]), adds, static_cast<T*>(args.workspace));
      },
      conv_implicit_gemm_data_bytes(g, empty_view<const T>(spec.y.shape), empty_view<T>(spec.x[0].shape)));
}

template <class T>
Lowered::Step forward_step(const Conv& op, const Spec& spec, Machine& machine) {
  const ConvGeometry g = geometry_of(op);
  return launches(
      machine, {Pass::forward}, name,
      [g, forward = conv_forward(op, spec)](Stream stream, const Args& args) {
        const ForwardInputs<T> in = begin_forward<T>(stream, forward, args);
        conv_implicit_gemm_forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end,
                                   static_cast<T*>(args.workspace));
      },
      conv_implicit_gemm_forward_bytes(g, empty_view<const T>(spec.x[0].shape), empty_view<T>(spec.y.shape)));
}

std::string limit(const char* what, std::int64_t most, std::int64_t given) {
  return std::string(name) + " takes up to " + std::to_string(most) + " " + what + ", not " + std::to_string(given);
}

}  // namespace

std::string implicit_gemm_refusal(const Conv& op, const Spec& spec) {
  constexpr std::int64_t most = conv_implicit_gemm_most;
  for (const Shape& shape : {spec.x[0].shape, spec.y.shape})
    if (shape.n * shape.plane() > most) return limit("pixels of a batch", most, shape.n * shape.plane());
  const std::int64_t filters = op.channels / op.groups, channels = spec.x[0].shape.c / op.groups;
  const std::int64_t weights = filters * channels * op.kernel.h * op.kernel.w;
  if (weights > most) return limit("weights of a group", most, weights);
  if (std::max(filters, channels) > conv_implicit_gemm_most_results)
    return limit("filters or channels of a group", conv_implicit_gemm_most_results, std::max(filters, channels));
  if (op.groups > conv_implicit_gemm_most_groups) return limit("groups", conv_implicit_gemm_most_groups, op.groups);
  return {};
}

std::int64_t implicit_gemm_cycles(const Conv& op, const Spec& spec, Pass pass) {
  const ConvGeometry g = geometry_of(op);
  const Shape &x = spec.x[0].shape, &y = spec.y.shape;
  return pass == Pass::backward_data
             ? conv_implicit_gemm_data_cycles(g, empty_view<const float>(y), empty_view<float>(x))
             : conv_implicit_gemm_forward_cycles(g, empty_view<const float>(x), empty_view<float>(y));
}

Lowered::Step implicit_gemm_step(const Conv& op, const Spec& spec, Pass pass, Machine& machine) {
  return with_type(spec.y.dtype, [&]<class T>() {
    switch (pass) {
      case Pass::backward_params: return weights_step<T>(op, spec, machine);
      case Pass::backward_data: return data_step<T>(op, spec, machine);
      default: return forward_step<T>(op, spec, machine);
    }
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
