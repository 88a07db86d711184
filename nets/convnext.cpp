// A ConvNet for the 2020s, Liu et al. 2022, table 9 (ConvNeXt-T), as in torchvision 0.29, convnext_tiny, without its
// stochastic depth, which is the identity in inference. torchvision's weights fit: its fully connected layer of each
// pixel is a 1x1 convolution here.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

struct Section {
  int channels, blocks;
};
constexpr std::array sections{Section{96, 3}, Section{192, 3}, Section{384, 9}, Section{768, 3}};

constexpr LayerNorm norm{.epsilon = 1e-6};

/// x times a trained factor for each channel: Going deeper with Image Transformers, Touvron et al. 2021, section 2.1.
Value layer_scale(Graph& graph, Value x, const std::string& name) {
  x = scale_shift(x, name, {.learned = true});
  graph.fix(name + ".shift");
  return x;
}

/// An inverted bottleneck behind a depthwise convolution: figure 4.
Value block(Graph& graph, Value x, const std::string& name) {
  const int channels = x.shape().c;
  const auto module = [&](int number) { return name + ".block." + std::to_string(number); };
  Value y = conv(x, module(0), {.channels = channels, .kernel = 7, .pad = 3, .groups = channels});
  y = layer_norm(y, module(2), norm);
  y = gelu(conv(y, module(3), {.channels = 4 * channels, .kernel = 1}), module(4));
  y = conv(y, module(5), {.channels = channels, .kernel = 1});
  return add(layer_scale(graph, y, name + ".layer_scale"), x, name + ".add");
}

}  // namespace

Graph convnext_tiny(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);

  int module = 0;
  const auto next = [&] { return "features." + std::to_string(module++); };
  for (const Section& section : sections) {
    const int channels = width(section.channels, options);
    const std::string patches = next();
    if (module == 1) {
      x = conv(x, patches + ".0", {.channels = channels, .kernel = 4, .stride = 4});
      x = layer_norm(x, patches + ".1", norm);
    } else {
      x = layer_norm(x, patches + ".0", norm);
      x = conv(x, patches + ".1", {.channels = channels, .kernel = 2, .stride = 2});
    }
    const std::string blocks = next();
    for (int i = 0; i < section.blocks; ++i) x = block(graph, x, blocks + '.' + std::to_string(i));
  }

  x = layer_norm(global_average_pool(x, "avgpool"), "classifier.0", norm);
  fully_connected(x, "classifier.2", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
