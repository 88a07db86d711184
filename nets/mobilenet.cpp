// MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018, table 2, as in torchvision 0.29,
// mobilenet_v2. Each convolution is followed by batch norm and ReLU6, but the last of a block by batch norm alone. No
// convolution has a bias. torchvision's weights fit.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A row of the table: the expansion t, the output channels c, the blocks n, the stride s of the first block.
struct Stage {
  int expansion, channels, blocks, stride;
};
constexpr std::array stages{Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2},  Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                            Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}};

/// Convolution, batch norm and ReLU6, as modules 0, 1 and 2 of `name`.
Value conv_bn_relu6(Value x, const std::string& name, Conv op) {
  return clip(conv_bn(x, name + ".0", name + ".1", op), name + ".2", 0, 6);
}

/// The first block of a stage has the stride and no shortcut.
Value inverted_residual(Value x, const std::string& block, const Stage& stage, int channels, bool first) {
  const int hidden = x.shape().c * stage.expansion, stride = first ? stage.stride : 1;
  int module = 0;
  const auto next = [&] { return block + ".conv." + std::to_string(module++); };
  Value y = x;
  if (stage.expansion > 1) y = conv_bn_relu6(y, next(), {.channels = hidden, .kernel = 1});
  y = conv_bn_relu6(y, next(), {.channels = hidden, .kernel = 3, .stride = stride, .pad = 1, .groups = hidden});
  const std::string convolution = next();
  y = conv_bn(y, convolution, next(), {.channels = channels, .kernel = 1});
  return first ? y : add(x, y, block + ".add");
}

}  // namespace

Graph mobilenet_v2(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  int module = 0;
  const auto next = [&] { return "features." + std::to_string(module++); };
  x = conv_bn_relu6(x, next(), {.channels = width(32, options), .kernel = 3, .stride = 2, .pad = 1});
  for (const Stage& stage : stages)
    for (int i = 0; i < stage.blocks; ++i)
      x = inverted_residual(x, next(), stage, width(stage.channels, options), i == 0);
  x = conv_bn_relu6(x, next(), {.channels = width(1280, options), .kernel = 1});

  x = global_average_pool(x, "avgpool");
  x = dropout_if(options, x, "classifier.0", 0.2);
  fully_connected(x, "classifier.1", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
