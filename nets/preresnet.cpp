// Identity Mappings in Deep Residual Networks, He et al. 2016: ResNet-200, as in facebook/fb.resnet.torch 985e569,
// models/preresnet.lua. Batch norm and ReLU come before each convolution; no ReLU follows an addition; projections
// have no batch norm. No convolution has a bias.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

constexpr std::array<int, 4> blocks{3, 24, 36, 3};

/// The normalisation before the first convolution of a block.
enum class Activation {
  none,    ///< the first block: the stem has already normalised
  shared,  ///< the first block of a further stage: branch and projection both read the activated x
  branch   ///< every other block: only the branch reads the activated x, and the shortcut is x itself
};

Value activated(Value x, const std::string& block, int number) {
  return relu(batch_norm(x, block + ".bn" + std::to_string(number)), block + ".relu");
}

Value convolved(Value x, const std::string& name, Conv op) {
  op.bias = false;
  return conv(x, name, op);
}

Value bottleneck(Value x, const std::string& block, int width, int stride, Activation activation) {
  Value y = activation == Activation::none ? x : activated(x, block, 1);
  Value shortcut = x;
  if (activation != Activation::branch) {
    shortcut = convolved(y, block + ".downsample.0", {.channels = 4 * width, .kernel = 1, .stride = stride});
  }
  y = convolved(y, block + ".conv1", {.channels = width, .kernel = 1});
  y = activated(y, block, 2);
  y = convolved(y, block + ".conv2", {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
  y = activated(y, block, 3);
  y = convolved(y, block + ".conv3", {.channels = 4 * width, .kernel = 1});
  return add(y, shortcut, block + ".add");
}

}  // namespace

Graph preresnet(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  x = convolved(x, "conv1", {.channels = width(64, options), .kernel = 7, .stride = 2, .pad = 3});
  x = relu(batch_norm(x, "bn1"), "relu");
  x = max_pool(x, "maxpool", {.window = 3, .stride = 2, .pad = 1});

  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < blocks[static_cast<std::size_t>(stage)]; ++i) {
      const std::string block = "layer" + std::to_string(stage + 1) + '.' + std::to_string(i);
      const bool first = i == 0;
      const Activation activation = !first ? Activation::branch : stage == 0 ? Activation::none : Activation::shared;
      x = bottleneck(x, block, width(64 << stage, options), first && stage > 0 ? 2 : 1, activation);
    }
  }

  x = relu(batch_norm(x, "bn_last"), "relu");
  x = global_average_pool(x, "avgpool");
  fully_connected(x, "fc", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
