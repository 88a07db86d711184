// Unsupervised Representation Learning with Deep Convolutional Generative Adversarial Networks, Radford, Metz, Chintala
// 2015, figure 1, as in its authors' soumith/dcgan.torch, main.lua, with half of the figure's widths. Names are those
// of pytorch/examples, dcgan/main.py, whose weights fit. No convolution has a bias.
//
// The discriminator ends in a logit: the sigmoid is a part of its loss.

#include "builders.h"

namespace lamina::nets {
Graph dcgan_generator(std::string_view name, const Options& options) {
  constexpr int noise = 100;

  Graph graph{std::string(name)};
  Value x = images(graph, noise, options);
  int module = 0;
  const auto next = [&] { return "main." + std::to_string(module++); };
  ConvTranspose up{.channels = 0, .kernel = 4, .stride = 1, .bias = false};  // the first: from 1 to 4 x 4 pixels
  for (const int channels : {512, 256, 128, 64}) {
    up.channels = width(channels, options);
    x = conv_transpose(x, next(), up);
    x = batch_norm(x, next());
    x = relu(x, next());
    up.stride = 2, up.pad = 1;
  }
  up.channels = options.classes;
  x = conv_transpose(x, next(), up);
  tanh(x, next());
  return graph;
}

Graph dcgan_discriminator(std::string_view name, const Options& options) {
  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  int module = 0;
  const auto next = [&] { return "main." + std::to_string(module++); };
  for (const int channels : {64, 128, 256, 512}) {
    x = conv(x, next(), {.channels = width(channels, options), .kernel = 4, .stride = 2, .pad = 1, .bias = false});
    if (channels > 64) x = batch_norm(x, next());
    x = leaky_relu(x, next(), 0.2);
  }
  conv(x, next(), {.channels = options.classes, .kernel = 4, .bias = false});
  return graph;
}

}  // namespace lamina::nets
