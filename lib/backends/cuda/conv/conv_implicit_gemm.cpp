// Convolution as a product whose factors are gathered from the image: kernels/conv/conv_implicit_gemm.cu.

#include "kernels/conv/conv_implicit_gemm.h"

#include <algorithm>

#include "product_steps.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

struct Kernels {
  static constexpr const char* name = "implicit_gemm";
  static constexpr auto forward = [](const auto&... given) { return conv_implicit_gemm_forward(given...); };
  static constexpr auto backward_data = [](const auto&... given) { return conv_implicit_gemm_backward_data(given...); };
  static constexpr auto backward_weights = [](const auto&... given) {
    return conv_implicit_gemm_backward_weights(given...);
  };
  static constexpr auto forward_bytes = [](const auto&... given) { return conv_implicit_gemm_forward_bytes(given...); };
  static constexpr auto backward_data_bytes = [](const auto&... given) {
    return conv_implicit_gemm_data_bytes(given...);
  };
  static constexpr auto backward_weights_bytes = [](const auto&... given) {
    return conv_implicit_gemm_partial_bytes(given...);
  };
};
constexpr const char* name = Kernels::name;

}  // namespace

std::string implicit_gemm_refusal(const ConvUnit& c, Pass, Machine&) {
  constexpr std::int64_t most = conv_implicit_gemm_most;
  for (const Shape& shape : {c.x, c.y})
    if (shape.n * shape.plane() > most) return limit<Kernels>("pixels of a batch", most, shape.n * shape.plane());
  const std::int64_t filters = c.group_filters(), channels = c.group_channels();
  const std::int64_t weights = filters * c.filter_weights();
  if (weights > most) return limit<Kernels>("weights of a group", most, weights);
  if (std::max(filters, channels) > conv_implicit_gemm_most_results)
    return limit<Kernels>("filters or channels of a group", conv_implicit_gemm_most_results,
                          std::max(filters, channels));
  if (c.op.groups > conv_implicit_gemm_most_groups)
    return limit<Kernels>("groups", conv_implicit_gemm_most_groups, c.op.groups);
  return {};
}

std::int64_t implicit_gemm_cycles(const ConvUnit& c, Pass pass) {
  const ConvGeometry g = geometry_of(c.op);
  return pass == Pass::backward_data
             ? conv_implicit_gemm_data_cycles(g, empty_view<const float>(c.y), empty_view<float>(c.x))
             : conv_implicit_gemm_forward_cycles(g, empty_view<const float>(c.x), empty_view<float>(c.y));
}

Lowered::Step implicit_gemm_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return product_step<Kernels>(c, pass, machine);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
