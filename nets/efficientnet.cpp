// EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, Tan and Le 2019, table 1 (B0), as in
// torchvision 0.29, efficientnet_b0, without its stochastic depth, which the paper's table does not have. Each
// convolution is followed by batch norm and SiLU, but the last of a block by batch norm alone. torchvision's weights
// fit.

#include <algorithm>
#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A row of the table: expansion, kernel, stride of the first block, output channels, blocks.
struct Stage {
  int expansion, kernel, stride, channels, blocks;
};
constexpr std::array stages{Stage{1, 3, 1, 16, 1}, Stage{6, 3, 2, 24, 2},  Stage{6, 5, 2, 40, 2},
                            Stage{6, 3, 2, 80, 3}, Stage{6, 5, 1, 112, 3}, Stage{6, 5, 2, 192, 4},
                            Stage{6, 3, 1, 320, 1}};

/// Convolution, batch norm and SiLU, as modules 0, 1 and 2 of `name`.
Value conv_bn_silu(Value x, const std::string& name, Conv op) {
  return silu(conv_bn(x, name + ".0", name + ".1", op), name + ".2");
}

/// x times a factor for each channel: Squeeze-and-Excitation, Hu et al. 2018.
Value squeeze_excitation(Value x, const std::string& name, int squeezed) {
  Value factor = global_average_pool(x, name + ".avgpool");
  factor = silu(conv(factor, name + ".fc1", {.channels = squeezed, .kernel = 1}), name + ".activation");
  factor = conv(factor, name + ".fc2", {.channels = x.shape().c, .kernel = 1});
  return multiply(x, sigmoid(factor, name + ".scale_activation"), name + ".mul");
}

/// The first block of a stage has the stride and no shortcut.
Value mobile_block(Value x, const std::string& name, const Stage& stage, int channels, bool first) {
  const int in = x.shape().c, hidden = in * stage.expansion, stride = first ? stage.stride : 1;
  int module = 0;
  const auto next = [&] { return name + ".block." + std::to_string(module++); };
  Value y = x;
  if (stage.expansion > 1) y = conv_bn_silu(y, next(), {.channels = hidden, .kernel = 1});
  y = conv_bn_silu(
      y, next(),
      {.channels = hidden, .kernel = stage.kernel, .stride = stride, .pad = stage.kernel / 2, .groups = hidden});
  y = squeeze_excitation(y, next(), std::max(1, in / 4));
  const std::string projection = next();
  y = conv_bn(y, projection + ".0", projection + ".1", {.channels = channels, .kernel = 1});
  return first ? y : add(y, x, name + ".add");
}

}  // namespace

Graph efficientnet_b0(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  int module = 0;
  const auto next = [&] { return "features." + std::to_string(module++); };
  x = conv_bn_silu(x, next(), {.channels = width(32, options), .kernel = 3, .stride = 2, .pad = 1});
  for (const Stage& stage : stages) {
    const std::string blocks = next();
    for (int i = 0; i < stage.blocks; ++i)
      x = mobile_block(x, blocks + '.' + std::to_string(i), stage, width(stage.channels, options), i == 0);
  }
  x = conv_bn_silu(x, next(), {.channels = width(1280, options), .kernel = 1});

  x = global_average_pool(x, "avgpool");
  x = dropout_if(options, x, "classifier.0", 0.2);
  fully_connected(x, "classifier.1", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
