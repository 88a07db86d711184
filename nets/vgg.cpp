// Very Deep Convolutional Networks for Large-Scale Image Recognition, Simonyan, Zisserman 2014, table 1: A, D and E.
//
// vgg16, vgg19  the authors' deploy files, as timed by cnn-benchmarks: dropout 0.5, softmax. torchvision's weights fit.
// vgg_a         as in soumith/convnet-benchmarks b458aab: dropout timed with rate 0, no softmax. torchvision: vgg11.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A column of the table: the number of 3x3 convolutions before each of its five pools.
struct Column {
  std::string_view name;
  std::array<int, 5> convs;
  double dropout_rate;
  bool softmax;
};

constexpr std::array columns{
    Column{"vgg_a", {1, 1, 2, 2, 2}, 0, false},
    Column{"vgg16", {2, 2, 3, 3, 3}, 0.5, true},
    Column{"vgg19", {2, 2, 4, 4, 4}, 0.5, true},
};
constexpr std::array<int, 5> widths{64, 128, 256, 512, 512};

}  // namespace

Graph vgg(std::string_view name, const Options& options) {
  const Column& net = column(columns, name);
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  int layer = 0;
  const auto next_feature = [&] { return "features." + std::to_string(layer++); };
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    for (int i = 0; i < net.convs[stage]; ++i) {
      x = conv(x, next_feature(), {.channels = width(widths[stage], options), .kernel = 3, .pad = 1});
      x = relu(x, next_feature());
    }
    x = max_pool(x, next_feature(), {.window = 2, .stride = 2});
  }

  x = fully_connected_relu(x, "classifier.0", "classifier.1", width(4096, options));
  x = dropout_if(options, x, "classifier.2", net.dropout_rate);
  x = fully_connected_relu(x, "classifier.3", "classifier.4", width(4096, options));
  x = dropout_if(options, x, "classifier.5", net.dropout_rate);
  x = fully_connected(x, "classifier.6", {.outputs = options.classes});
  if (net.softmax) softmax_if(options, x, "prob");
  return graph;
}

}  // namespace lamina::nets
