// The list of the zoo: every network's name, provenance, extents, published protocol and builder.

#include <iterator>

#include "builders.h"
#include "lamina/error.h"

namespace lamina::nets {
namespace {

/// The channels of a network's images and of its output.
struct Data {
  int channels, classes;
};
constexpr Data imagenet{3, 1000}, mnist{1, 10}, cifar10{3, 10};

// Torch's `nn` adds to parameter gradients. The first convolution computes the image's gradient, unless the model file
// prevents this. Models that came through loadcaffe, and inception.torch, end in a softmax.
constexpr Protocol loadcaffe{.softmax = true, .input_gradient = true, .accumulate = true};
constexpr Protocol torch{.softmax = false, .input_gradient = false, .accumulate = true};
constexpr Protocol keras{.softmax = true, .input_gradient = false, .accumulate = false};

struct Row {
  std::string_view name;
  int image, smallest_image;
  Data data;
  Protocol protocol;
  Builder builder;
  std::string_view source;
};

constexpr Row rows[] = {
    {"alexnet", 224, 39, imagenet, loadcaffe, alexnet, "Krizhevsky et al. 2012; BVLC/caffe 9b89154, bvlc_alexnet"},
    {"inception_v1", 224, 17, imagenet, loadcaffe, inception_v1,
     "Szegedy et al. 2015; soumith/inception.torch 8b9705f"},
    {"vgg16", 224, 32, imagenet, loadcaffe, vgg, "Simonyan, Zisserman 2014, D; the authors' deploy file"},
    {"vgg19", 224, 32, imagenet, loadcaffe, vgg, "Simonyan, Zisserman 2014, E; the authors' deploy file"},
    {"resnet18", 224, 1, imagenet, torch, resnet, "He et al. 2015; facebook/fb.resnet.torch 985e569"},
    {"resnet34", 224, 1, imagenet, torch, resnet, "He et al. 2015; facebook/fb.resnet.torch 985e569"},
    {"resnet50", 224, 1, imagenet, torch, resnet, "He et al. 2015; facebook/fb.resnet.torch 985e569 (v1.5)"},
    {"resnet101", 224, 1, imagenet, torch, resnet, "He et al. 2015; facebook/fb.resnet.torch 985e569 (v1.5)"},
    {"resnet152", 224, 1, imagenet, torch, resnet, "He et al. 2015; facebook/fb.resnet.torch 985e569 (v1.5)"},
    {"resnet200", 224, 1, imagenet, torch, preresnet, "He et al. 2016; facebook/fb.resnet.torch 985e569"},
    {"overfeat", 231, 71, imagenet, torch, overfeat, "Sermanet et al. 2013, fast; convnet-benchmarks b458aab"},
    {"alexnet_owt", 224, 63, imagenet, torch, alexnet_owt, "Krizhevsky 2014; soumith/convnet-benchmarks b458aab"},
    {"vgg_a", 224, 32, imagenet, torch, vgg, "Simonyan, Zisserman 2014, A; soumith/convnet-benchmarks b458aab"},
    {"googlenet_cb", 224, 1, imagenet, torch, googlenet_cb, "Szegedy et al. 2015; soumith/convnet-benchmarks b458aab"},
    {"googlenet_tv", 224, 15, imagenet, torch, googlenet_tv, "Szegedy et al. 2015; torchvision 0.14.1, googlenet"},
    {"resnext50_32x4d", 224, 1, imagenet, torch, resnet, "Xie et al. 2017; torchvision 0.29, resnext50_32x4d"},
    {"mobilenet_v2", 224, 1, imagenet, torch, mobilenet_v2, "Sandler et al. 2018; torchvision 0.29, mobilenet_v2"},
    {"efficientnet_b0", 224, 1, imagenet, torch, efficientnet_b0, "Tan, Le 2019; torchvision 0.29, efficientnet_b0"},
    {"convnext_tiny", 224, 32, imagenet, torch, convnext_tiny, "Liu et al. 2022; torchvision 0.29, convnext_tiny"},
    {"darknet53", 256, 1, imagenet, torch, darknet53, "Redmon, Farhadi 2018; pjreddie/darknet, darknet53.cfg"},
    {"unet", 256, 16, {3, 2}, torch, unet, "Ronneberger et al. 2015; milesial/Pytorch-UNet, bilinear=False"},
    {"dcgan_generator", 1, 1, {100, 3}, torch, dcgan_generator, "Radford et al. 2015; soumith/dcgan.torch, netG"},
    {"dcgan_discriminator",
     64,
     64,
     {3, 1},
     torch,
     dcgan_discriminator,
     "Radford et al. 2015; soumith/dcgan.torch, netD"},
    {"mnist_mlp", 28, 1, mnist, keras, mnist_mlp, "Keras 2 examples, mnist_mlp.py"},
    {"mnist_cnn", 28, 6, mnist, keras, mnist_cnn, "Keras 2 examples, mnist_cnn.py"},
    {"cifar10_cnn", 32, 10, cifar10, keras, cifar10_cnn, "Keras 2 examples, cifar10_cnn.py"},
};

/// The position of a network in the table and in list().
std::size_t position(std::string_view name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    if (rows[i].name == name) return i;
    names.emplace_back(rows[i].name);
  }
  throw UsageError("no network \"" + std::string(name) + "\"; " + near_names(name, names));
}

void check(std::string_view network, const char* option, int number, int smallest) {
  constexpr int largest = 1 << 30;
  if (number >= smallest && number <= largest) return;
  throw UsageError(std::string(network) + ": option " + option + " is " + std::to_string(number) +
                   ", but must be between " + std::to_string(smallest) + " and " + std::to_string(largest));
}

std::string square(int extent) { return std::to_string(extent) + 'x' + std::to_string(extent); }

}  // namespace

const std::vector<Info>& list() {
  static const std::vector<Info> infos = [] {
    std::vector<Info> collected;
    for (const Row& row : rows) {
      collected.push_back(
          {row.name, row.source, row.image, row.smallest_image, row.data.channels, row.data.classes, row.protocol});
    }
    return collected;
  }();
  return infos;
}

const Info& info(std::string_view name) { return list()[position(name)]; }

Graph build(std::string_view name, const Options& wanted) {
  const Row& net = rows[position(name)];
  check(name, "batch", wanted.batch, 1);
  check(name, "image", wanted.image, 0);
  check(name, "classes", wanted.classes, 0);
  check(name, "width_divisor", wanted.width_divisor, 1);

  Options options = wanted;
  if (options.image == 0) options.image = net.image;
  if (options.classes == 0) options.classes = net.data.classes;
  try {
    return net.builder(name, options);
  } catch (const ShapeError& error) {
    if (options.image >= net.smallest_image) throw;
    throw ShapeError(std::string(name) + " needs images of at least " + square(net.smallest_image) + ", not " +
                     square(options.image) + ": " + error.what());
  }
}

}  // namespace lamina::nets
