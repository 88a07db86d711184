// ImageNet Classification with Deep Convolutional Neural Networks, Krizhevsky, Sutskever, Hinton 2012, in two forms.
//
// alexnet      BVLC/caffe 9b89154, models/bvlc_alexnet: two groups in conv2, conv4 and conv5; LRN after ReLU and before
//              pooling (CaffeNet swaps these two and is another network); pools round up. Trained at 227 pixels, timed
//              by cnn-benchmarks at 224: conv1 then makes 54 x 54 instead of 55 x 55, and everything from pool1 on is
//              equal.
// alexnet_owt  "One weird trick for parallelizing convolutional neural networks", Krizhevsky 2014, as in
//              soumith/convnet-benchmarks b458aab and torchvision, whose weights fit: no groups, no LRN, pools round
//              down. Its dropout is timed with rate 0.

#include "builders.h"

namespace lamina::nets {

Graph alexnet(std::string_view name, const Options& options) {
  constexpr MaxPool pool{.window = 3, .stride = 2, .rounding = Rounding::up};
  const auto channels = [&](int published) { return width(published, options, 2); };

  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  x = conv_relu(x, "conv1", "relu1", {.channels = channels(96), .kernel = 11, .stride = 4});
  x = max_pool(lrn(x, "norm1"), "pool1", pool);
  x = conv_relu(x, "conv2", "relu2", {.channels = channels(256), .kernel = 5, .pad = 2, .groups = 2});
  x = max_pool(lrn(x, "norm2"), "pool2", pool);
  x = conv_relu(x, "conv3", "relu3", {.channels = channels(384), .kernel = 3, .pad = 1});
  x = conv_relu(x, "conv4", "relu4", {.channels = channels(384), .kernel = 3, .pad = 1, .groups = 2});
  x = conv_relu(x, "conv5", "relu5", {.channels = channels(256), .kernel = 3, .pad = 1, .groups = 2});
  x = max_pool(x, "pool5", pool);
  x = fully_connected_relu(x, "fc6", "relu6", width(4096, options));
  x = dropout_if(options, x, "drop6", 0.5);
  x = fully_connected_relu(x, "fc7", "relu7", width(4096, options));
  x = dropout_if(options, x, "drop7", 0.5);
  x = fully_connected(x, "fc8", {.outputs = options.classes});
  softmax_if(options, x, "prob");
  return graph;
}

Graph alexnet_owt(std::string_view name, const Options& options) {
  constexpr MaxPool pool{.window = 3, .stride = 2};
  const auto channels = [&](int published) { return width(published, options); };

  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  x = conv_relu(x, "features.0", "features.1", {.channels = channels(64), .kernel = 11, .stride = 4, .pad = 2});
  x = max_pool(x, "features.2", pool);
  x = conv_relu(x, "features.3", "features.4", {.channels = channels(192), .kernel = 5, .pad = 2});
  x = max_pool(x, "features.5", pool);
  x = conv_relu(x, "features.6", "features.7", {.channels = channels(384), .kernel = 3, .pad = 1});
  x = conv_relu(x, "features.8", "features.9", {.channels = channels(256), .kernel = 3, .pad = 1});
  x = conv_relu(x, "features.10", "features.11", {.channels = channels(256), .kernel = 3, .pad = 1});
  x = max_pool(x, "features.12", pool);
  x = dropout_if(options, x, "classifier.0", 0);
  x = fully_connected_relu(x, "classifier.1", "classifier.2", channels(4096));
  x = dropout_if(options, x, "classifier.3", 0);
  x = fully_connected_relu(x, "classifier.4", "classifier.5", channels(4096));
  fully_connected(x, "classifier.6", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
