#pragma once
// Small networks with dropout and running statistics, which a training must save. Also samples for them.

#include "lamina/data.h"
#include "lamina/synthetic.h"
#include "lamina/train.h"

namespace lamina::test {

/// A network with a convolution, optionally a batch norm, dropout, and 10 classes.
inline Graph small_network(int batch, bool with_batch_norm = false, double dropped = 0.25) {
  Graph graph("small network");
  const Value labels = graph.input({batch, 1, 1, 1}, "labels");
  Value x = graph.input({batch, 1, 28, 28}, "images");
  x = max_pool(x, "pool", {.window = 4, .stride = 4});
  x = conv(x, "conv", {.channels = 6, .kernel = 3, .bias = !with_batch_norm});
  if (with_batch_norm) x = batch_norm(x, "bn");
  x = dropout(relu(x), "drop", {.rate = dropped});
  x = fully_connected(x, "fc", {.outputs = 10});
  softmax_cross_entropy(x, labels, "loss");
  return graph;
}

/// Two views of an image go through one tower with shared statistics, which applies one convolution twice. Then one
/// matrix is used with two biases.
inline Graph shared_network(int batch) {
  Graph graph("shared network");
  const Value labels = graph.input({batch, 1, 1, 1}, "labels"), images = graph.input({batch, 1, 28, 28}, "images");
  std::vector<Value> towers;
  for (const std::string use : {"a", "b"}) {
    Value x = use == "a" ? max_pool(images, "pool.a", {.window = 4, .stride = 4})
                         : average_pool(images, "pool.b", {.window = 4, .stride = 4});
    x = conv(x, "stem." + use, {.channels = 4, .kernel = 3, .bias = false});
    for (const std::string again : {"1.", "2."}) x = relu(conv(x, again + use, {.channels = 4, .kernel = 3, .pad = 1}));
    towers.push_back(batch_norm(x, "norm." + use));
    if (use == "b")
      for (const std::string name : {"stem.", "1.", "norm."}) graph.share_all(name + "b", name + "a");
    graph.share_all("2." + use, "1." + use);
  }
  Value x = global_average_pool(concat(towers));
  for (const std::string use : {"a", "b"}) x = fully_connected(x, "square." + use, {.outputs = 8});
  graph.share("square.b.weight", "square.a.weight");
  softmax_cross_entropy(fully_connected(x, "fc", {.outputs = 10}), labels, "loss");
  return graph;
}

inline std::unique_ptr<Source> digits(std::int64_t count, std::uint64_t seed) {
  return image_source(Glyphs(Glyphs::mnist()).draw(count, seed));
}

}  // namespace lamina::test
