#pragma once
// Declarations that the files of the zoo share: the builders that zoo.cpp lists, and the application of options to a
// network.

#include <algorithm>
#include <string>
#include <string_view>

#include "lamina/graph.h"
#include "lamina/nets.h"

namespace lamina::nets {

/// Builds the named network. The options have no defaults left: image and classes are set.
using Builder = Graph (*)(std::string_view name, const Options&);

Graph alexnet(std::string_view name, const Options&);
Graph alexnet_owt(std::string_view name, const Options&);
Graph cifar10_cnn(std::string_view name, const Options&);
Graph convnext_tiny(std::string_view name, const Options&);
Graph darknet53(std::string_view name, const Options&);
Graph dcgan_discriminator(std::string_view name, const Options&);
Graph dcgan_generator(std::string_view name, const Options&);
Graph efficientnet_b0(std::string_view name, const Options&);
Graph googlenet_cb(std::string_view name, const Options&);
Graph googlenet_tv(std::string_view name, const Options&);
Graph inception_v1(std::string_view name, const Options&);
Graph mnist_cnn(std::string_view name, const Options&);
Graph mnist_mlp(std::string_view name, const Options&);
Graph mobilenet_v2(std::string_view name, const Options&);
Graph overfeat(std::string_view name, const Options&);
Graph preresnet(std::string_view name, const Options&);
Graph resnet(std::string_view name, const Options&);
Graph unet(std::string_view name, const Options&);
Graph vgg(std::string_view name, const Options&);

/// The column of a paper's table with the given name. zoo.cpp uses no other names.
template <class Columns>
const auto& column(const Columns& columns, std::string_view name) {
  return *std::find_if(columns.begin(), columns.end(), [&](const auto& each) { return each.name == name; });
}

/// The input of every network.
Value images(Graph&, int channels, const Options&);

/// A hidden width, divided as the options say and rounded up to a multiple of the number of groups.
int width(int published, const Options&, int groups = 1);

/// A convolution without bias, and a batch norm.
Value conv_bn(Value x, const std::string& conv_name, const std::string& bn_name, Conv);

Value conv_relu(Value x, const std::string& conv_name, const std::string& relu_name, const Conv&);
Value fully_connected_relu(Value x, const std::string& fc_name, const std::string& relu_name, int outputs);

/// The op's value, or x itself if the options omit the op.
Value dropout_if(const Options&, Value x, const std::string& name, double rate);
Value softmax_if(const Options&, Value x, const std::string& name);

}  // namespace lamina::nets
