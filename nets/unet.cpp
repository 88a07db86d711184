// U-Net: Convolutional Networks for Biomedical Image Segmentation, Ronneberger, Fischer, Brox 2015, figure 1, in the
// form that is used today: milesial/Pytorch-UNet, unet/unet_model.py, bilinear=False, whose weights fit. Convolutions
// keep the size of the map, and have batch norms. The paper's convolutions lose a border, so its copies are cropped.

#include <vector>

#include "builders.h"

namespace lamina::nets {
namespace {

/// Two 3x3 convolutions, each with batch norm and ReLU.
Value double_conv(Value x, const std::string& name, int channels) {
  int number = 0;
  const auto next = [&] { return name + ".double_conv." + std::to_string(number++); };
  for (int i = 0; i < 2; ++i) {
    x = conv(x, next(), {.channels = channels, .kernel = 3, .pad = 1, .bias = false});
    x = batch_norm(x, next());
    x = relu(x, next());
  }
  return x;
}

/// x at twice the size, beside the copy of that size. Zeros stand for the row and column that a pool left out.
Value joined(Value x, Value copy, const std::string& name) {
  x = conv_transpose(x, name + ".up", {.channels = copy.shape().c, .kernel = 2, .stride = 2});
  const Size missing{copy.shape().h - x.shape().h, copy.shape().w - x.shape().w};
  if (missing != 0) x = pad(x, name + ".pad", {.before = 0, .after = missing});
  return concat({copy, x}, name + ".concat");
}

}  // namespace

Graph unet(std::string_view name, const Options& options) {
  constexpr int depth = 4;
  const auto channels = [&](int level) { return width(64 << level, options); };

  Graph graph{std::string(name)};
  Value x = double_conv(images(graph, 3, options), "inc", channels(0));
  std::vector<Value> copies;
  for (int level = 1; level <= depth; ++level) {
    const std::string down = "down" + std::to_string(level) + ".maxpool_conv.";
    copies.push_back(x);
    x = max_pool(x, down + '0', {.window = 2, .stride = 2});
    x = double_conv(x, down + '1', channels(level));
  }
  for (int level = depth - 1; level >= 0; --level) {
    const std::string up = "up" + std::to_string(depth - level);
    x = joined(x, copies[static_cast<std::size_t>(level)], up);
    x = double_conv(x, up + ".conv", channels(level));
  }
  conv(x, "outc.conv", {.channels = options.classes, .kernel = 1});
  return graph;
}

}  // namespace lamina::nets
