// The examples of Keras 2 (mnist_mlp.py, mnist_cnn.py, cifar10_cnn.py), as timed in minimaxir/keras-cntk-benchmark
// 5b95f46, v2/test_files. Keras flattens in the order h, w, c, this library in the order c, h, w: the weights of the
// first dense layer after a convolution must be permuted when they are exchanged.

#include "builders.h"

namespace lamina::nets {

Graph mnist_mlp(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 1, options);
  x = fully_connected_relu(x, "dense_1", "relu_1", width(512, options));
  x = dropout_if(options, x, "dropout_1", 0.2);
  x = fully_connected_relu(x, "dense_2", "relu_2", width(512, options));
  x = dropout_if(options, x, "dropout_2", 0.2);
  x = fully_connected(x, "dense_3", {.outputs = options.classes});
  softmax_if(options, x, "prob");
  return graph;
}

Graph mnist_cnn(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 1, options);
  x = conv_relu(x, "conv2d_1", "relu_1", {.channels = width(32, options), .kernel = 3});
  x = conv_relu(x, "conv2d_2", "relu_2", {.channels = width(64, options), .kernel = 3});
  x = max_pool(x, "max_pooling2d_1", {.window = 2, .stride = 2});
  x = dropout_if(options, x, "dropout_1", 0.25);
  x = fully_connected_relu(x, "dense_1", "relu_3", width(128, options));
  x = dropout_if(options, x, "dropout_2", 0.5);
  x = fully_connected(x, "dense_2", {.outputs = options.classes});
  softmax_if(options, x, "prob");
  return graph;
}

Graph cifar10_cnn(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  x = conv_relu(x, "conv2d_1", "relu_1", {.channels = width(32, options), .kernel = 3, .pad = 1});
  x = conv_relu(x, "conv2d_2", "relu_2", {.channels = width(32, options), .kernel = 3});
  x = max_pool(x, "max_pooling2d_1", {.window = 2, .stride = 2});
  x = dropout_if(options, x, "dropout_1", 0.25);
  x = conv_relu(x, "conv2d_3", "relu_3", {.channels = width(64, options), .kernel = 3, .pad = 1});
  x = conv_relu(x, "conv2d_4", "relu_4", {.channels = width(64, options), .kernel = 3});
  x = max_pool(x, "max_pooling2d_2", {.window = 2, .stride = 2});
  x = dropout_if(options, x, "dropout_2", 0.25);
  x = fully_connected_relu(x, "dense_1", "relu_5", width(512, options));
  x = dropout_if(options, x, "dropout_3", 0.5);
  x = fully_connected(x, "dense_2", {.outputs = options.classes});
  softmax_if(options, x, "prob");
  return graph;
}

}  // namespace lamina::nets
