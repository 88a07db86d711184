// Darknet-53: YOLOv3: An Incremental Improvement, Redmon and Farhadi 2018, table 1, as in pjreddie/darknet,
// cfg/darknet53.cfg. Each convolution except the classifier has no bias and is followed by batch norm and a leaky ReLU
// of slope 0.1. Names and extents are those of timm's darknet53, whose slope is 0.01.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// Convolution, batch norm and leaky ReLU.
Value unit(Value x, const std::string& name, int channels, int kernel, int stride = 1) {
  x = conv_bn(x, name + ".conv", name + ".bn",
              {.channels = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2});
  return leaky_relu(x, name + ".act", 0.1);
}

}  // namespace

Graph darknet53(std::string_view name, const Options& options) {
  constexpr std::array blocks{1, 2, 8, 8, 4};

  Graph graph{std::string(name)};
  Value x = unit(images(graph, 3, options), "stem.conv1", width(32, options), 3);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string stage = "stages." + std::to_string(i);
    const int channels = width(64 << i, options), half = width(32 << i, options);
    x = unit(x, stage + ".conv_down", channels, 3, 2);
    for (int j = 0; j < blocks[i]; ++j) {
      const std::string block = stage + ".blocks." + std::to_string(j);
      const Value y = unit(unit(x, block + ".conv1", half, 1), block + ".conv2", channels, 3);
      x = add(x, y, block + ".add");
    }
  }

  x = global_average_pool(x, "avgpool");
  fully_connected(x, "head.fc", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
