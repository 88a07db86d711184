// Cases that together reach every kernel of every op.

#include "tests/support/cases/suite.h"

#include <utility>

namespace lamina::test {

std::vector<Case> kernel_cases() {
  const Conv conv_3x3{.channels = 5, .kernel = 3, .pad = 1};
  const Shape x{2, 6, 7, 9};
  const Link relu{Relu{}}, add{Add{}};
  std::vector<Case> all = {
      {"conv", conv_3x3, {x}},
      {"conv + ReLU", conv_3x3, {x}, {relu}},
      {"grouped conv", Conv{.channels = 4, .kernel = {3, 2}, .stride = 2, .pad = 1, .groups = 2}, {x}},
      {"long strided sums", Conv{.channels = 80, .kernel = 3, .stride = 2, .pad = 1, .bias = false}, {{1, 2, 5, 5}}},
      {"long sums", Conv{.channels = 3, .kernel = 3, .pad = 1, .bias = false}, {{3, 40, 14, 14}}},
      {"many tiles", Conv{.channels = 3, .kernel = 3, .pad = 1, .bias = false}, {{2, 3, 16, 33}}, {relu}},
      {"1x1 in packs + ReLU", Conv{.channels = 8, .kernel = 1}, {{2, 8, 6, 6}}, {relu}},
      {"depthwise conv of many pixels", Conv{.channels = 2, .kernel = 3, .groups = 2}, {{2, 2, 34, 34}}},
      {"long 1x1", Conv{.channels = 4, .kernel = 1}, {{2, 300, 3, 3}}},
      {"many pixels", Conv{.channels = 2, .kernel = 1, .bias = false}, {{2, 2, 23, 23}}},
      {"bias of many pixels", Conv{.channels = 2, .kernel = 1}, {{2, 2, 32, 33}}},
      {"transposed conv", ConvTranspose{.channels = 4, .kernel = 4, .stride = 2, .pad = 1, .groups = 2}, {x}},
      {"wide max pool", MaxPool{.window = {16, 17}, .stride = 1}, {{1, 2, 17, 18}}},
      {"long batch norm", BatchNorm{}, {{2, 2, 40, 40}}, {relu}},
      {"long group norm", GroupNorm{.groups = 2}, {{2, 4, 40, 40}}},
      {"layer norm of vectors", LayerNorm{}, {{9, 70, 1, 1}}},
      {"LRN", Lrn{}, {x}},
      {"wide LRN", Lrn{.size = 3}, {x}},
      {"fully connected", FullyConnected{.outputs = 10}, {x}},
      {"fully connected + ReLU", FullyConnected{.outputs = 10}, {x}, {relu}},
      {"long fully connected", FullyConnected{.outputs = 6}, {{3, 50, 5, 6}}},
      {"softmax", Softmax{}, {x}},
      {"softmax of classes", Softmax{}, {{3, 130, 1, 1}}},
      {"log softmax of rows", Softmax{.axis = Axis::row, .log = true}, {x}},
      {"softmax of columns", Softmax{.axis = Axis::column}, {x}},
      {"mean of channels", Reduce{ReduceBy::mean, true, false, false}, {x}},
      {"sum around rows", Reduce{ReduceBy::sum, true, false, true}, {x}},
      {"maximum of rows", Reduce{ReduceBy::max, false, true, false}, {x}},
      {"maximum of images", Reduce{ReduceBy::max, true, true, true}, {x}},
      {"pad", Pad{.before = {0, 2}, .after = 1, .value = 3}, {x}},
      {"pad by mirror", Pad{.before = {0, 2}, .after = 1, .by = PadBy::reflect}, {x}},
      {"resize", Resize{.to = {9, 20}}, {x}},
      {"linear resize", Resize{.to = {14, 5}, .by = ResizeBy::linear}, {x}},
      {"channel shuffle", channel_shuffle(x, 3), {x}},
      {"five axes", pixel_shuffle({2, 8, 3, 5}, 2), {{2, 8, 3, 5}}},
      {"softmax cross entropy", SoftmaxCrossEntropy{.clip = 0.1}, {x, {x.n, 1, x.h, x.w}}},
      {"softmax cross entropy of classes", SoftmaxCrossEntropy{}, {{5, 300, 1, 1}, {5, 1, 1, 1}}},
      {"sigmoid cross entropy", SigmoidCrossEntropy{}, {x, x}},
      {"embedding", Embedding{.vocabulary = 9, .features = 70}, {{2, 1, 150, 1}}},
      {"LSTM", Recurrent{.hidden = 5}, {{3, 4, 6, 1}}},
      {"LSTM, two images a block", Recurrent{.hidden = 2}, {{133, 1, 2, 1}}},
      {"LSTM, four images a block", Recurrent{.hidden = 2}, {{265, 1, 2, 1}}},
      {"GRU", Recurrent{.hidden = 5, .cell = Cell::gru}, {{3, 4, 6, 1}}},
      {"LSTM of ids", Recurrent{.hidden = 9, .steps = Steps::last, .reverse = true, .vocabulary = 6}, {{2, 1, 5, 1}}},
      {"concat", Concat{}, {x, {2, 3, 7, 9}}},
      {"concat in packs", Concat{}, {{2, 4, 4, 6}, {2, 2, 4, 6}}},
      {"slice", Slice{.first = 1, .count = 3}, {x}},
      {"concat of rows", Concat{Axis::row}, {x, x}},
      {"slice with a step", Slice{.axis = Axis::column, .first = 1, .count = 2, .step = 2}, {x}},
      {"slice in packs", Slice{.first = 2, .count = 2}, {{2, 4, 4, 6}}},
  };
  // Shapes with packs over adjacent images, without packs, and with packs by plane.
  for (const Shape& shape : {x, Shape{1, 3, 7, 9}, Shape{2, 4, 4, 6}}) {
    for (const Op& op :
         std::vector<Op>{Relu{}, Dropout{}, GlobalAveragePool{}, BatchNorm{}, GroupNorm{1},
                         GroupNorm{.groups = 1, .affine = false}, LayerNorm{}, LayerNorm{.affine = false}})
      all.push_back({"by element", op, {shape}});
    for (int function = 0; function <= static_cast<int>(Function::pow); ++function) {
      const Pointwise op{static_cast<Function>(function), 0.5, 0.75};
      all.push_back({"by element", op, {shape}});
    }
    all.push_back({"by element", BatchNorm{}, {shape}, {relu}});
    all.push_back({"by element", BatchNorm{}, {shape}, {add, relu}});
    for (int function = 0; function <= static_cast<int>(BinaryFunction::minimum); ++function) {
      const Binary op{static_cast<BinaryFunction>(function)};
      all.push_back({"by element", op, {shape, shape}});
      for (const Shape& repeats :
           {Shape{shape.n, shape.c, 1, 1}, Shape{shape.n, 1, shape.h, shape.w}, Shape{shape.n, 1, shape.h, 1}}) {
        all.push_back({"by element", op, {shape, repeats}});
        all.push_back({"by element", op, {repeats, shape}});
      }
    }
    for (const bool by_channel : {true, false})
      for (const bool learned : {false, true})
        all.push_back({"by element", ScaleShift{.by_channel = by_channel, .learned = learned}, {shape}});
    for (const bool by_channel : {true, false}) all.push_back({"by element", PRelu{by_channel}, {shape}});
    all.push_back({"by element", Add{}, {shape, shape}});
    all.push_back({"by element", Add{}, {shape, shape, shape}});
    all.push_back({"by element", Add{}, {shape, shape}, {{Pointwise{Function::sigmoid}}}});
    all.push_back({"by element", Add{}, {shape, shape, shape}, {{Pointwise{Function::sigmoid}}}});
  }
  for (const int kernel : {3, 5, 7})
    for (const int stride : {1, 2}) {
      const Conv depthwise{.channels = 12, .kernel = kernel, .stride = stride, .pad = kernel / 2, .groups = 6};
      all.push_back({"depthwise conv", depthwise, {x}, {relu}});
    }
  for (const auto& [window, stride] : {std::pair<Size, int>{3, 2}, {2, 2}, {3, 1}, {{3, 2}, 1}}) {
    all.push_back({"max pool", MaxPool{.window = window, .stride = stride, .pad = 1, .rounding = Rounding::up}, {x}});
    all.push_back({"average pool", AveragePool{.window = window, .stride = stride, .pad = 1}, {x}});
  }
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    Case inference = all[i];
    inference.mode = Mode::inference;
    all.push_back(inference);
  }
  const Conv alike{.channels = x.c, .kernel = 3, .pad = 1};
  all.push_back({"conv + batch norm + add + ReLU", alike, {x}, {{BatchNorm{}}, add, relu}, Mode::inference});
  return all;
}

}  // namespace lamina::test
