// The convolutions that kernels/conv/conv_implicit_gemm.cu takes, and the cycles that its model predicts.

#include "kernels/conv/conv_implicit_gemm.h"

#include <algorithm>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

std::string implicit_gemm_refusal(const ConvUnit& c, Pass, Machine&) {
  constexpr std::int64_t most = conv_implicit_gemm_most;
  for (const Shape& shape : {c.x, c.y})
    if (shape.n * shape.plane() > most)
      return limit(ConvImplicitGemm::name, "pixels of a batch", most, shape.n * shape.plane());
  const std::int64_t filters = c.group_filters(), channels = c.group_channels();
  const std::int64_t weights = filters * c.filter_weights();
  if (weights > most) return limit(ConvImplicitGemm::name, "weights of a group", most, weights);
  if (std::max(filters, channels) > conv_implicit_gemm_most_results)
    return limit(ConvImplicitGemm::name, "filters or channels of a group", conv_implicit_gemm_most_results,
                 std::max(filters, channels));
  if (c.op.groups > conv_implicit_gemm_most_groups)
    return limit(ConvImplicitGemm::name, "groups", conv_implicit_gemm_most_groups, c.op.groups);
  return {};
}

std::int64_t implicit_gemm_cycles(const ConvUnit& c, Pass pass) {
  const ConvGeometry g = geometry_of(c.op);
  return pass == Pass::backward_data
             ? conv_implicit_gemm_data_cycles(g, empty_view<const float>(c.y), empty_view<float>(c.x))
             : conv_implicit_gemm_forward_cycles(g, empty_view<const float>(c.x), empty_view<float>(c.y));
}

}  // namespace lamina::LAMINA_CUDA_SPACE
