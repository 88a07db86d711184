// Going Deeper with Convolutions, Szegedy et al. 2014, table 1, in three forms, all without auxiliary heads.
//
// inception_v1  soumith/inception.torch 8b9705f, googlenet.lua: Google's released network, as timed by cnn-benchmarks.
//               It differs from the paper by two numbers of the table, LRN of width 11, a third pool without padding
//               (13 x 13 maps), and 1008 outputs, of which columns 1 to 1000 are taken.
// googlenet_cb  soumith/convnet-benchmarks b458aab: the paper's table, no LRN, ReLU after the classifier.
// googlenet_tv  torchvision's googlenet, whose weights fit: batch norm, pools that round up, and a 3x3 convolution in
//               the branch named 5x5.

#include <array>

#include "builders.h"

namespace lamina::nets {
namespace {

/// A line of the table: outputs of 1x1, "3x3 reduce", 3x3, "5x5 reduce", 5x5 and "pool proj".
struct Row {
  const char* name;
  int c1, r3, c3, r5, c5, pool;
};
using Table = std::array<Row, 9>;

constexpr Table paper{{
    {"3a", 64, 96, 128, 16, 32, 32},
    {"3b", 128, 128, 192, 32, 96, 64},
    {"4a", 192, 96, 208, 16, 48, 64},
    {"4b", 160, 112, 224, 24, 64, 64},
    {"4c", 128, 128, 256, 24, 64, 64},
    {"4d", 112, 144, 288, 32, 64, 64},
    {"4e", 256, 160, 320, 32, 128, 128},
    {"5a", 256, 160, 320, 32, 128, 128},
    {"5b", 384, 192, 384, 48, 128, 128},
}};

/// The differences of Google's released network in 4a and 5a.
constexpr Table released = [] {
  Table table = paper;
  table[2].c3 = 204;
  table[7].r5 = 48;
  return table;
}();

/// The parts that the three forms share, and the two points in which their blocks differ.
struct Form {
  const Options& options;
  const Table& table;
  bool normalised = false;  ///< batch norm after each convolution, which then has no bias
  int branch3_kernel = 5;

  /// The ops from convolution to ReLU; `op.channels` is the published width.
  Value unit(Value x, const std::string& name, Conv op) const {
    op.channels = width(op.channels, options);
    op.bias = !normalised;
    x = conv(x, name + ".conv", op);
    if (normalised) x = batch_norm(x, name + ".bn", {.epsilon = 1e-3});
    return relu(x, name + ".relu");
  }

  Value inception(Value x, const Row& row) const {
    const std::string block = std::string("inception") + row.name;
    const Value one = unit(x, block + ".branch1", {.channels = row.c1, .kernel = 1});

    Value three = unit(x, block + ".branch2.0", {.channels = row.r3, .kernel = 1});
    three = unit(three, block + ".branch2.1", {.channels = row.c3, .kernel = 3, .pad = 1});

    Value five = unit(x, block + ".branch3.0", {.channels = row.r5, .kernel = 1});
    five = unit(five, block + ".branch3.1", {.channels = row.c5, .kernel = branch3_kernel, .pad = branch3_kernel / 2});

    Value pooled = max_pool(x, block + ".branch4.0", {.window = 3, .stride = 1, .pad = 1});
    pooled = unit(pooled, block + ".branch4.1", {.channels = row.pool, .kernel = 1});

    return concat({one, three, five, pooled}, block + ".concat");
  }

  /// The blocks whose names begin with the given digit.
  Value blocks(Value x, char digit) const {
    for (const Row& row : table) {
      if (row.name[0] == digit) x = inception(x, row);
    }
    return x;
  }

  /// Everything between the images and the global pooling. `fourth` is the pool before the blocks of 5.
  Value features(Value x, const MaxPool& pool, const MaxPool& fourth) const {
    x = unit(x, "conv1", {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = max_pool(x, "maxpool1", pool);
    x = unit(x, "conv2", {.channels = 64, .kernel = 1});
    x = unit(x, "conv3", {.channels = 192, .kernel = 3, .pad = 1});
    x = blocks(max_pool(x, "maxpool2", pool), '3');
    x = blocks(max_pool(x, "maxpool3", pool), '4');
    return blocks(max_pool(x, "maxpool4", fourth), '5');
  }
};

constexpr MaxPool padded{.window = 3, .stride = 2, .pad = 1};

}  // namespace

Graph inception_v1(std::string_view name, const Options& options) {
  constexpr Lrn lrn_of_google{.size = 11, .alpha = 0.00109999999404, .beta = 0.5, .k = 2};
  constexpr int unused_outputs = 8;  // column 0 and the last seven
  const Form form{.options = options, .table = released};

  Graph graph{std::string(name)};
  Value x = images(graph, 3, options);
  x = form.unit(x, "conv1", {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = lrn(max_pool(x, "maxpool1", padded), "lrn1", lrn_of_google);
  x = form.unit(x, "conv2", {.channels = 64, .kernel = 1});
  x = form.unit(x, "conv3", {.channels = 192, .kernel = 3, .pad = 1});
  x = max_pool(lrn(x, "lrn2", lrn_of_google), "maxpool2", padded);
  x = form.blocks(x, '3');
  x = max_pool(x, "maxpool3", {.window = 3, .stride = 2});
  x = form.blocks(x, '4');
  x = max_pool(x, "maxpool4", padded);
  x = form.blocks(x, '5');
  x = global_average_pool(x, "avgpool");
  x = fully_connected(x, "fc", {.outputs = options.classes + unused_outputs});
  x = slice(x, "narrow", {.first = 1, .count = options.classes});
  softmax_if(options, x, "prob");
  return graph;
}

Graph googlenet_cb(std::string_view name, const Options& options) {
  const Form form{.options = options, .table = paper};

  Graph graph{std::string(name)};
  const Value x = form.features(images(graph, 3, options), padded, padded);
  fully_connected_relu(global_average_pool(x, "avgpool"), "fc", "fc_relu", options.classes);
  return graph;
}

Graph googlenet_tv(std::string_view name, const Options& options) {
  constexpr MaxPool rounded_up{.window = 3, .stride = 2, .rounding = Rounding::up};
  const Form form{.options = options, .table = paper, .normalised = true, .branch3_kernel = 3};

  Graph graph{std::string(name)};
  Value x = form.features(images(graph, 3, options), rounded_up, {.window = 2, .stride = 2, .rounding = Rounding::up});
  x = dropout_if(options, global_average_pool(x, "avgpool"), "dropout", 0.2);
  fully_connected(x, "fc", {.outputs = options.classes});
  return graph;
}

}  // namespace lamina::nets
