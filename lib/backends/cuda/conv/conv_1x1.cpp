// Convolution by 1x1 kernels as a product read directly from the tensors: kernels/conv/conv_1x1.cu.

#include "../../../../kernels/conv/conv_1x1.h"

#include <algorithm>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr const char* name = "gemm_1x1";

template <class T>
Lowered::Step weights_step(const Conv& op, const Spec& spec, Machine& machine) {
  const ConvGeometry g = geometry_of(op);
  const std::size_t bytes =
      std::max(conv_1x1_weights_bytes<T>(g, empty_view<const T>(spec.x[0].shape), empty_view<const T>(spec.y.shape)),
               backward_bias_bytes(op, spec));
  return launches(
      machine, {Pass::backward_params}, name,
      [op, g, relu = ends_in_relu(spec), adds = spec.adds_dw](Stream stream, const Args& args) {
        const Masked<T> dy = masked_dy<T>(args, relu);
        backward_bias(stream, op, args, dy, adds);
        if (!args.dw.empty() && args.dw[0])
          conv_1x1_backward_weights(stream, g, view<const T>(args.x[0]), dy, args.dw[0].as<T>(),
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
          conv_1x1_backward_data(stream, g, args.w[0].as<const T>(), masked_dy<T>(args, relu), view<T>(args.dx[0]),
                                 adds, static_cast<T*>(args.workspace));
      },
      conv_1x1_data_bytes(g, empty_view<const T>(spec.y.shape), empty_view<T>(spec.x[0].shape)));
}

template <class T>
Lowered::Step forward_step(const Conv& op, const Spec& spec, Machine& machine) {
  const ConvGeometry g = geometry_of(op);
  return launches(
      machine, {Pass::forward}, name,
      [g, forward = conv_forward(op, spec)](Stream stream, const Args& args) {
        const ForwardInputs<T> in = begin_forward<T>(stream, forward, args);
        conv_1x1_forward(stream, g, view<const T>(args.x[0]), in.w, view<T>(args.y), in.end,
                         static_cast<T*>(args.workspace));
      },
      conv_1x1_forward_bytes(g, empty_view<const T>(spec.x[0].shape), empty_view<T>(spec.y.shape)));
}

std::string limit(const char* what, std::int64_t most, std::int64_t given) {
  return std::string(name) + " takes up to " + std::to_string(most) + " " + what + ", not " + std::to_string(given);
}

}  // namespace

std::string gemm_1x1_refusal(const Conv& op, const Spec& spec) {
  const auto by = [](int h, int w) { return std::to_string(h) + "x" + std::to_string(w); };
  if (op.kernel.h != 1 || op.kernel.w != 1)
    return std::string(name) + " takes 1x1 kernels, not " + by(op.kernel.h, op.kernel.w);
  if (op.pad.h != 0 || op.pad.w != 0) return std::string(name) + " takes no padding, not " + by(op.pad.h, op.pad.w);
  for (const Shape& shape : {spec.x[0].shape, spec.y.shape})
    if (shape.n * shape.plane() > conv_1x1_most)
      return limit("pixels of a batch", conv_1x1_most, shape.n * shape.plane());
  const std::int64_t filters = op.channels / op.groups, channels = spec.x[0].shape.c / op.groups;
  if (filters * channels > conv_1x1_most) return limit("weights of a group", conv_1x1_most, filters * channels);
  const std::int64_t blocks = conv_1x1_blocks(std::max(filters, channels), spec.y.shape.n * spec.y.shape.plane());
  if (blocks > conv_1x1_most) return limit("tiles of results of a group", conv_1x1_most, blocks);
  if (op.groups > conv_1x1_most_groups) return limit("groups", conv_1x1_most_groups, op.groups);
  return {};
}

bool gemm_1x1_pays(const Conv& op, const Spec& spec, Pass pass) {
  // With single pixels the weight gradient takes as many instructions as implicit_gemm, whose largest tile is larger.
  const std::int64_t pack = 16 / static_cast<std::int64_t>(size_of(spec.y.dtype));
  const bool packs = op.stride.h == 1 && op.stride.w == 1 && spec.y.shape.plane() % pack == 0;
  return packs || pass != Pass::backward_params;
}

Lowered::Step gemm_1x1_step(const Conv& op, const Spec& spec, Pass pass, Machine& machine) {
  return with_type(spec.y.dtype, [&]<class T>() {
    switch (pass) {
      case Pass::backward_params: return weights_step<T>(op, spec, machine);
      case Pass::backward_data: return data_step<T>(op, spec, machine);
      default: return forward_step<T>(op, spec, machine);
    }
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
