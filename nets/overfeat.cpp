// OverFeat: Integrated Recognition, Localization and Detection using Convolutional Networks, Sermanet et al. 2013, the
// fast model of table 1, as in soumith/convnet-benchmarks b458aab, torch7/imagenet_winners/overfeat.lua: 231 pixels, no
// padding in conv2, no dropout, no softmax.

#include "builders.h"

namespace lamina::nets {

Graph overfeat(std::string_view name, const Options& options) {
  constexpr MaxPool pool{.window = 2, .stride = 2};
  const auto channels = [&](int published) { return width(published, options); };

  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  x = conv_relu(x, "conv1", "relu1", {.channels = channels(96), .kernel = 11, .stride = 4});
  x = max_pool(x, "pool1", pool);
  x = conv_relu(x, "conv2", "relu2", {.channels = channels(256), .kernel = 5});
  x = max_pool(x, "pool2", pool);
  x = conv_relu(x, "conv3", "relu3", {.channels = channels(512), .kernel = 3, .pad = 1});
  x = conv_relu(x, "conv4", "relu4", {.channels = channels(1024), .kernel = 3, .pad = 1});
  x = conv_relu(x, "conv5", "relu5", {.channels = channels(1024), .kernel = 3, .pad = 1});
  x = max_pool(x, "pool5", pool);
  x = fully_connected_relu(x, "fc6", "relu6", channels(3072));
  x = fully_connected_relu(x, "fc7", "relu7", channels(4096));
  fully_connected(x, "fc8", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
