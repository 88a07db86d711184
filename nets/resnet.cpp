// Deep Residual Learning for Image Recognition, He et al. 2015, table 1, as in facebook/fb.resnet.torch 985e569,
// models/resnet.lua, and as timed by cnn-benchmarks: the stride of a bottleneck is in its 3x3 convolution, not in its
// first 1x1 ("v1.5"). No convolution has a bias. torchvision's weights fit.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A column of the table: the numbers of blocks of conv2_x, conv3_x, conv4_x and conv5_x.
struct Column {
  std::string_view name;
  bool bottleneck;
  std::array<int, 4> blocks;
};

constexpr std::array columns{
    Column{"resnet18", false, {2, 2, 2, 2}},  Column{"resnet34", false, {3, 4, 6, 3}},
    Column{"resnet50", true, {3, 4, 6, 3}},   Column{"resnet101", true, {3, 4, 23, 3}},
    Column{"resnet152", true, {3, 8, 36, 3}},
};

/// The convolution and the batch norm with the given number in a block.
Value conv_bn(Value x, const std::string& block, int number, Conv op) {
  op.bias = false;
  x = conv(x, block + ".conv" + std::to_string(number), op);
  return batch_norm(x, block + ".bn" + std::to_string(number));
}

/// Identity if the shapes allow it, else a 1x1 projection: option B of section 3.3.
Value shortcut(Value x, const std::string& block, int channels, int stride) {
  if (stride == 1 && x.shape().c == channels) return x;
  x = conv(x, block + ".downsample.0", {.channels = channels, .kernel = 1, .stride = stride, .bias = false});
  return batch_norm(x, block + ".downsample.1");
}

Value joined(Value branch, Value identity, const std::string& block) {
  return relu(add(branch, identity, block + ".add"), block + ".relu");
}

Value basic(Value x, const std::string& block, int width, int stride) {
  Value y = relu(conv_bn(x, block, 1, {.channels = width, .kernel = 3, .stride = stride, .pad = 1}), block + ".relu");
  y = conv_bn(y, block, 2, {.channels = width, .kernel = 3, .pad = 1});
  return joined(y, shortcut(x, block, width, stride), block);
}

Value bottleneck(Value x, const std::string& block, int width, int stride) {
  Value y = relu(conv_bn(x, block, 1, {.channels = width, .kernel = 1}), block + ".relu");
  y = relu(conv_bn(y, block, 2, {.channels = width, .kernel = 3, .stride = stride, .pad = 1}), block + ".relu");
  y = conv_bn(y, block, 3, {.channels = 4 * width, .kernel = 1});
  return joined(y, shortcut(x, block, 4 * width, stride), block);
}

}  // namespace

Graph resnet(std::string_view name, const Options& options) {
  const Column& net = column(columns, name);
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  x = conv(x, "conv1", {.channels = width(64, options), .kernel = 7, .stride = 2, .pad = 3, .bias = false});
  x = relu(batch_norm(x, "bn1"), "relu");
  x = max_pool(x, "maxpool", {.window = 3, .stride = 2, .pad = 1});

  for (int stage = 0; stage < 4; ++stage) {
    const int stage_width = width(64 << stage, options);
    for (int i = 0; i < net.blocks[static_cast<std::size_t>(stage)]; ++i) {
      const std::string block = "layer" + std::to_string(stage + 1) + '.' + std::to_string(i);
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      x = net.bottleneck ? bottleneck(x, block, stage_width, stride) : basic(x, block, stage_width, stride);
    }
  }

  x = global_average_pool(x, "avgpool");
  fully_connected(x, "fc", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
