#pragma once
// A small network with everything that a training must keep: dropout, running statistics, and samples for it.

#include "lamina/batches.h"
#include "lamina/synthetic.h"
#include "lamina/train.h"

namespace lamina::test {

/// A convolution, optionally with a batch norm, dropout, 10 classes.
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

inline std::unique_ptr<Source> digits(std::int64_t count, std::uint64_t seed) {
  return image_source(Glyphs(Glyphs::mnist()).draw(count, seed));
}

}  // namespace lamina::test
