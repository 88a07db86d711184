// Deep Residual Learning for Image Recognition, He et al. 2015, table 1, as in facebook/fb.resnet.torch 985e569,
// models/resnet.lua, and as timed by cnn-benchmarks: the stride of a bottleneck is in its 3x3 convolution, not in its
// first 1x1 ("v1.5"). No convolution has a bias. torchvision's weights fit.
//
// ResNeXt: Aggregated Residual Transformations for Deep Neural Networks, Xie et al. 2017, table 1: the 3x3 convolution
// of a bottleneck has groups.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A column of the table: the numbers of blocks of conv2_x, conv3_x, conv4_x and conv5_x.
struct Column {
  std::string_view name;
  bool bottleneck;
  std::array<int, 4> blocks;
  int groups = 1, group_width = 64;  ///< groups of the 3x3 convolution in a bottleneck, and their width in conv2_x
};

constexpr std::array columns{
    Column{"resnet18", false, {2, 2, 2, 2}},  Column{"resnet34", false, {3, 4, 6, 3}},
    Column{"resnet50", true, {3, 4, 6, 3}},   Column{"resnet101", true, {3, 4, 23, 3}},
    Column{"resnet152", true, {3, 8, 36, 3}}, Column{"resnext50_32x4d", true, {3, 4, 6, 3}, 32, 4},
};

/// The convolution and the batch norm with the given number in a block.
Value conv_bn(Value x, const std::string& block, int number, const Conv& op) {
  const std::string suffix = std::to_string(number);
  return nets::conv_bn(x, block + ".conv" + suffix, block + ".bn" + suffix, op);
}

/// Identity if the shapes allow it, else a 1x1 projection: option B of section 3.3.
Value shortcut(Value x, const std::string& block, int channels, int stride) {
  if (stride == 1 && x.shape().c == channels) return x;
  return nets::conv_bn(x, block + ".downsample.0", block + ".downsample.1",
                       {.channels = channels, .kernel = 1, .stride = stride});
}

Value joined(Value branch, Value identity, const std::string& block) {
  return relu(add(branch, identity, block + ".add"), block + ".relu");
}

Value basic(Value x, const std::string& block, int width, int stride) {
  Value y = relu(conv_bn(x, block, 1, {.channels = width, .kernel = 3, .stride = stride, .pad = 1}), block + ".relu");
  y = conv_bn(y, block, 2, {.channels = width, .kernel = 3, .pad = 1});
  return joined(y, shortcut(x, block, width, stride), block);
}

Value bottleneck(Value x, const std::string& block, int inner, int groups, int channels, int stride) {
  Value y = relu(conv_bn(x, block, 1, {.channels = inner, .kernel = 1}), block + ".relu");
  y = relu(conv_bn(y, block, 2, {.channels = inner, .kernel = 3, .stride = stride, .pad = 1, .groups = groups}),
           block + ".relu");
  y = conv_bn(y, block, 3, {.channels = channels, .kernel = 1});
  return joined(y, shortcut(x, block, channels, stride), block);
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
    const int inner = width((net.groups * net.group_width) << stage, options, net.groups);
    for (int i = 0; i < net.blocks[static_cast<std::size_t>(stage)]; ++i) {
      const std::string block = "layer" + std::to_string(stage + 1) + '.' + std::to_string(i);
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      x = net.bottleneck ? bottleneck(x, block, inner, net.groups, 4 * stage_width, stride)
                         : basic(x, block, stage_width, stride);
    }
  }

  x = global_average_pool(x, "avgpool");
  fully_connected(x, "fc", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
