// Four bottleneck blocks of ResNet-50's first stage.

#include "bottleneck_stack.h"

#include <string>

namespace lamina::bench {
namespace {

Value conv_bn(Value x, const std::string& block, int number, Conv op) {
  op.bias = false;
  const Value y = conv(x, block + ".conv" + std::to_string(number), op);
  return batch_norm(y, block + ".bn" + std::to_string(number));
}

Value shortcut(Value x, const std::string& block, int channels) {
  if (x.shape().c == channels) return x;
  const Value y = conv(x, block + ".downsample.0", {.channels = channels, .kernel = 1, .bias = false});
  return batch_norm(y, block + ".downsample.1");
}

Value bottleneck(Value x, const std::string& block, int width) {
  Value y = relu(conv_bn(x, block, 1, {.channels = width, .kernel = 1}), block + ".relu");
  y = relu(conv_bn(y, block, 2, {.channels = width, .kernel = 3, .pad = 1}), block + ".relu");
  y = conv_bn(y, block, 3, {.channels = 4 * width, .kernel = 1});
  y = add(y, shortcut(x, block, 4 * width), block + ".add");
  return relu(y, block + ".relu");
}

}  // namespace

Graph bottleneck_stack(int batch) {
  Graph graph("bottleneck_stack");
  Value x = graph.input({.n = batch, .c = 64, .h = 56, .w = 56});
  for (int i = 0; i < 4; ++i) x = bottleneck(x, "block" + std::to_string(i), 64);
  return graph;
}

}  // namespace lamina::bench
