// The convolutions that kernels/conv/conv_1x1.cu takes, and those for which it pays.

#include "kernels/conv/conv_1x1.h"

#include <algorithm>

#include "conv_step.h"

namespace lamina::LAMINA_CUDA_SPACE {

std::string gemm_1x1_refusal(const ConvUnit& c, Pass, Machine&) {
  const Conv& op = c.op;
  const auto by = [](int h, int w) { return std::to_string(h) + "x" + std::to_string(w); };
  if (op.kernel.h != 1 || op.kernel.w != 1)
    return std::string(Conv1x1::name) + " takes 1x1 kernels, not " + by(op.kernel.h, op.kernel.w);
  if (op.pad.h != 0 || op.pad.w != 0)
    return std::string(Conv1x1::name) + " takes no padding, not " + by(op.pad.h, op.pad.w);
  for (const Shape& shape : {c.x, c.y})
    if (shape.n * shape.plane() > conv_1x1_most)
      return limit<Conv1x1>("pixels of a batch", conv_1x1_most, shape.n * shape.plane());
  const std::int64_t filters = c.group_filters(), channels = c.group_channels();
  if (filters * channels > conv_1x1_most)
    return limit<Conv1x1>("weights of a group", conv_1x1_most, filters * channels);
  const std::int64_t blocks = conv_1x1_blocks(std::max(filters, channels), c.y.n * c.y.plane());
  if (blocks > conv_1x1_most) return limit<Conv1x1>("tiles of results of a group", conv_1x1_most, blocks);
  if (op.groups > conv_1x1_most_groups) return limit<Conv1x1>("groups", conv_1x1_most_groups, op.groups);
  return {};
}

bool gemm_1x1_pays(const ConvUnit& c, Pass pass) {
  // With single pixels the weight gradient takes as many instructions as implicit_gemm, whose largest tile is larger.
  const std::int64_t pack = 16 / static_cast<std::int64_t>(size_of(c.dtype));
  const bool packs = c.op.stride == Size(1) && c.y.plane() % pack == 0;
  return packs || pass != Pass::backward_params;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
