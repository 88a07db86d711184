// The shapes that infer() finds for ops, and its errors for wrong parameters and inputs.

#include <climits>

#include "lamina/op.h"
#include "tests/support/catch.h"

using namespace lamina;
using Shapes = std::vector<Shape>;

namespace {

Shape y(const Op& op, const Shapes& x) { return infer(op, x).y; }

std::string complaint(const Op& op, const Shapes& x) {
  return test::said_by<ShapeError>([&] { infer(op, x); });
}

constexpr int huge = INT_MAX;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a convolution rounds the extents of y down") {
  const Inferred alexnet = infer(Conv{.channels = 96, .kernel = 11, .stride = 4}, {{2, 3, 224, 224}});
  CHECK(alexnet.y == Shape{2, 96, 54, 54});
  CHECK(alexnet.params == Shapes{{96, 3, 11, 11}, {1, 96, 1, 1}});
  CHECK(alexnet.state.empty());
  CHECK(y(Conv{.channels = 64, .kernel = 7, .stride = 2, .pad = 3}, {{1, 3, 224, 224}}) == Shape{1, 64, 112, 112});
}

TEST_CASE("a convolution has separate kernels, strides, pads and dilations for rows and columns") {
  const Conv op{.channels = 6, .kernel = {1, 3}, .stride = {2, 1}, .pad = {0, 2}, .dilation = {5, 2}, .bias = false};
  const Inferred shapes = infer(op, {{3, 4, 9, 10}});
  CHECK(shapes.y == Shape{3, 6, 5, 10});
  CHECK(shapes.params == Shapes{{6, 4, 1, 3}});
}

TEST_CASE("a grouped convolution's filters have the channels of their group") {
  const Inferred shapes = infer(Conv{.channels = 256, .kernel = 5, .pad = 2, .groups = 2}, {{1, 96, 27, 27}});
  CHECK(shapes.y == Shape{1, 256, 27, 27});
  CHECK(shapes.params == Shapes{{256, 48, 5, 5}, {1, 256, 1, 1}});
}

TEST_CASE("pools round down, or up if asked") {
  CHECK(y(MaxPool{.window = 3, .stride = 2}, {{1, 96, 54, 54}}) == Shape{1, 96, 26, 26});
  CHECK(y(MaxPool{.window = 3, .stride = 2, .rounding = Rounding::up}, {{1, 96, 54, 54}}) == Shape{1, 96, 27, 27});
  CHECK(y(MaxPool{.window = 3, .stride = 2, .rounding = Rounding::up}, {{1, 96, 55, 55}}) == Shape{1, 96, 27, 27});
  CHECK(y(AveragePool{.window = {2, 3}, .stride = {1, 3}, .pad = {1, 0}}, {{1, 2, 4, 8}}) == Shape{1, 2, 5, 2});
}

TEST_CASE("rounding up drops a window that would start after the last row of the image") {
  // Of 5 rows, windows start at 0, 3 and 6: the third holds no row.
  CHECK(y(MaxPool{.window = 1, .stride = 3, .rounding = Rounding::up}, {{1, 1, 5, 5}}) == Shape{1, 1, 2, 2});
  // Of 3 rows, windows start at -1, 1 and 3: the third starts in the padding after the image.
  CHECK(y(AveragePool{.window = 2, .stride = 2, .pad = 1, .rounding = Rounding::up}, {{1, 1, 3, 3}}) ==
        Shape{1, 1, 2, 2});
}

TEST_CASE("rounding up lets a window reach beyond an image that is smaller than the window") {
  CHECK(y(MaxPool{.window = 3, .stride = 2, .rounding = Rounding::up}, {{1, 1, 2, 2}}) == Shape{1, 1, 1, 1});
  CHECK(complaint(MaxPool{.window = 3, .stride = 2, .rounding = Rounding::up}, {{1, 1, 1, 2}}) ==
        "max_pool(3x3, stride 2x2, rounded up): a window of 3 rows does not fit into 1; x: 1x1x1x2");
}

TEST_CASE("a global average pool has one value per channel") {
  CHECK(y(GlobalAveragePool{}, {{2, 512, 7, 5}}) == Shape{2, 512, 1, 1});
}

TEST_CASE("a batch norm has scale, shift and two running statistics per channel") {
  const Inferred shapes = infer(BatchNorm{}, {{2, 5, 3, 4}});
  CHECK(shapes.y == Shape{2, 5, 3, 4});
  CHECK(shapes.params == Shapes{{1, 5, 1, 1}, {1, 5, 1, 1}});
  CHECK(shapes.state == Shapes{{1, 5, 1, 1}, {1, 5, 1, 1}});
}

TEST_CASE("each output of a fully connected op has a weight for every input element") {
  const Inferred shapes = infer(FullyConnected{4096}, {{16, 256, 6, 6}});
  CHECK(shapes.y == Shape{16, 4096, 1, 1});
  CHECK(shapes.params == Shapes{{4096, 256, 6, 6}, {1, 4096, 1, 1}});
  CHECK(infer(FullyConnected{.outputs = 3, .bias = false}, {{1, 2, 1, 1}}).params == Shapes{{3, 2, 1, 1}});
}

TEST_CASE("elementwise ops keep the shape") {
  const Shape x{2, 3, 4, 5};
  const Op op = GENERATE(as<Op>{}, Relu{}, Lrn{}, Softmax{}, Softmax{.axis = Axis::column, .log = true}, Dropout{},
                         Pointwise{Function::sigmoid}, Pointwise{Function::tanh});
  CAPTURE(to_string(op));
  CHECK(y(op, {x}) == x);
  CHECK_THROWS_AS(y(Softmax{.axis = static_cast<Axis>(3)}, {x}), UsageError);
  CHECK_THROWS_WITH(y(Softmax{.axis = Axis::row}, {{1 << 20, 1 << 20, 2, 2}}),
                    "softmax(along rows): more than 2^31 - 1 sums; x: 1048576x1048576x2x2");
  CHECK(infer(Dropout{}, {x}).state == Shapes{{1, 1, 1, 1}});
}

TEST_CASE("a loss is one number, has an accuracy, and needs labels that fit the logits") {
  const Shape one{1, 2, 1, 1}, logits{8, 10, 3, 2}, labels{8, 1, 3, 2};
  CHECK(y(SoftmaxCrossEntropy{}, {logits, labels}) == one);
  CHECK(y(SigmoidCrossEntropy{}, {labels, labels}) == one);
  CHECK(y(SigmoidCrossEntropy{}, {logits, logits}) == one);
  CHECK_THROWS_AS(y(SoftmaxCrossEntropy{}, {logits, logits}), ShapeError);
  CHECK_THROWS_AS(y(SoftmaxCrossEntropy{}, {logits, {8, 1, 2, 3}}), ShapeError);
  CHECK_THROWS_AS(y(SoftmaxCrossEntropy{}, {logits, {4, 1, 3, 2}}), ShapeError);
  CHECK_THROWS_AS(y(SoftmaxCrossEntropy{}, {logits}), ShapeError);
  CHECK_THROWS_AS(y(SigmoidCrossEntropy{}, {logits, labels}), ShapeError);
  for (const double clip : {-0.1, 0.5, not_a_number}) {
    CHECK_THROWS_AS(y(SoftmaxCrossEntropy{clip}, {logits, labels}), ShapeError);
    CHECK_THROWS_AS(y(SigmoidCrossEntropy{clip}, {logits, logits}), ShapeError);
  }
}

TEST_CASE("an embedding has a row of features for each id") {
  const Inferred shapes = infer(Embedding{.vocabulary = 20, .features = 5}, {{3, 1, 7, 2}});
  CHECK(shapes.y == Shape{3, 5, 7, 2});
  CHECK(shapes.params == Shapes{{20, 5, 1, 1}});
  CHECK_THROWS_AS(y(Embedding{.vocabulary = 20, .features = 5}, {{3, 2, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Embedding{.vocabulary = 0, .features = 5}, {{3, 1, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Embedding{.vocabulary = 20, .features = 0}, {{3, 1, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Embedding{.vocabulary = (1 << 24) + 1, .features = 1}, {{3, 1, 7, 1}}), ShapeError);
  CHECK(y(Embedding{.vocabulary = 1 << 24, .features = 1}, {{3, 1, 7, 1}}) == Shape{3, 1, 7, 1});
}

TEST_CASE("an LSTM has four rows of weights per hidden value, a GRU three, and y is every step or the last") {
  const Inferred shapes = infer(Recurrent{.hidden = 5}, {{3, 4, 7, 1}});
  CHECK(shapes.y == Shape{3, 5, 7, 1});
  CHECK(shapes.params == Shapes{{20, 4, 1, 1}, {20, 5, 1, 1}, {1, 20, 1, 1}});
  CHECK(y(Recurrent{.hidden = 5, .steps = Steps::last, .reverse = true}, {{3, 4, 7, 1}}) == Shape{3, 5, 1, 1});
  CHECK(infer(Recurrent{.hidden = 5, .vocabulary = 9}, {{3, 1, 7, 1}}).params ==
        Shapes{{20, 9, 1, 1}, {20, 5, 1, 1}, {1, 20, 1, 1}});
  const Recurrent gru{.hidden = 5, .cell = Cell::gru};
  CHECK(infer(gru, {{3, 4, 7, 1}}).params == Shapes{{15, 4, 1, 1}, {15, 5, 1, 1}, {1, 20, 1, 1}});
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5}, {{3, 4, 7, 2}}), ShapeError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 0}, {{3, 4, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = huge}, {{3, 4, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5, .vocabulary = 9}, {{3, 4, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5, .vocabulary = -1}, {{3, 1, 7, 1}}), ShapeError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5, .cell = static_cast<Cell>(77)}, {{3, 4, 7, 1}}), UsageError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5, .steps = static_cast<Steps>(77)}, {{3, 4, 7, 1}}), UsageError);
  CHECK_THROWS_AS(y(Recurrent{.hidden = 5, .gates = static_cast<Gates>(77)}, {{3, 4, 7, 1}}), UsageError);
}

TEST_CASE("labels and ids must be whole numbers, other inputs need not") {
  const Shape logits{8, 10, 3, 2}, labels{8, 1, 3, 2}, ids{8, 1, 7, 1};
  CHECK(whole_numbers(SoftmaxCrossEntropy{}, {logits, labels}, 0) == 0);
  CHECK(whole_numbers(SoftmaxCrossEntropy{}, {logits, labels}, 1) == 10);
  CHECK(whole_numbers(SigmoidCrossEntropy{}, {logits, logits}, 0) == 0);
  CHECK(whole_numbers(SigmoidCrossEntropy{}, {logits, logits}, 1) == 2);
  CHECK(whole_numbers(Embedding{.vocabulary = 30, .features = 4}, {ids}, 0) == 30);
  CHECK(whole_numbers(Recurrent{.hidden = 4}, {ids}, 0) == 0);
  CHECK(whole_numbers(Recurrent{.hidden = 4, .vocabulary = 57}, {ids}, 0) == 57);
  CHECK(whole_numbers(Add{}, {ids, ids}, 1) == 0);
}

TEST_CASE("a transposed convolution's y has the shape of the x of the convolution that it transposes") {
  const ConvTranspose dcgan{.channels = 3, .kernel = 4, .stride = 2, .pad = 1};
  CHECK(y(dcgan, {{2, 8, 32, 16}}) == Shape{2, 3, 64, 32});
  const ConvTranspose odd{.channels = 6,
                          .kernel = {3, 2},
                          .stride = {3, 1},
                          .pad = {1, 0},
                          .output_pad = {2, 0},
                          .dilation = {2, 1},
                          .groups = 2,
                          .bias = false};
  CHECK(y(odd, {{1, 4, 5, 7}}) == Shape{1, 6, 4 * 3 - 2 + 4 + 2 + 1, 8});
  CHECK(infer(odd, {{1, 4, 5, 7}}).params == Shapes{{4, 3, 3, 2}});
  CHECK(infer(dcgan, {{1, 8, 5, 7}}).params == Shapes{{8, 3, 4, 4}, {1, 3, 1, 1}});
  CHECK(complaint(ConvTranspose{.channels = 1, .kernel = 1, .output_pad = 1}, {{1, 1, 2, 2}}) ==
        "conv_transpose(1, 1x1, output pad 1x1): output_pad must be below stride; x: 1x1x2x2");
  CHECK(complaint(ConvTranspose{.channels = 1, .kernel = 1, .pad = 1}, {{1, 1, 2, 2}}) ==
        "conv_transpose(1, 1x1, pad 1x1): the result is empty: 1x1x0x0, but every extent must be at least 1; x: "
        "1x1x2x2");
}

TEST_CASE("joins and slices have the shapes of their definitions") {
  CHECK(y(Add{}, {{2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}}) == Shape{2, 3, 4, 5});
  CHECK(y(Concat{}, {{2, 3, 4, 5}, {2, 1, 4, 5}, {2, 7, 4, 5}}) == Shape{2, 11, 4, 5});
  CHECK(y(Slice{.first = 1, .count = 1000}, {{2, 1008, 1, 1}}) == Shape{2, 1000, 1, 1});
  CHECK(y(Slice{.first = 8, .count = 1000}, {{2, 1008, 1, 1}}) == Shape{2, 1000, 1, 1});
  CHECK(y(Concat{Axis::column}, {{2, 3, 4, 5}, {2, 3, 4, 1}}) == Shape{2, 3, 4, 6});
  CHECK(y(Slice{.axis = Axis::row, .first = 1, .count = 3, .step = 2}, {{2, 3, 6, 5}}) == Shape{2, 3, 3, 5});
}

TEST_CASE("multiply, pad, shuffles, norms and reductions have the shapes of their definitions") {
  const auto bordered = [](int side, PadBy by) {
    return infer(Pad{.before = {side, 0}, .after = 0, .by = by}, {{1, 1, 3, 3}}).y.h;
  };
  CHECK(bordered(9, PadBy::edge) == 12);
  CHECK(bordered(2, PadBy::reflect) == 5);
  CHECK_THROWS_AS(bordered(3, PadBy::reflect), ShapeError);
  CHECK(bordered(3, PadBy::wrap) == 6);
  CHECK_THROWS_AS(bordered(4, PadBy::wrap), ShapeError);
  CHECK(y(Binary{BinaryFunction::multiply}, {{2, 3, 4, 5}, {2, 3, 4, 5}}) == Shape{2, 3, 4, 5});
  CHECK(y(Binary{BinaryFunction::multiply}, {{2, 3, 4, 5}, {2, 3, 1, 1}}) == Shape{2, 3, 4, 5});
  CHECK(y(Pad{.before = {1, 2}, .after = {3, 4}}, {{2, 3, 4, 5}}) == Shape{2, 3, 8, 11});
  CHECK(y(Pad{.before = 0, .after = 0, .channels_before = 1, .channels_after = 5}, {{2, 3, 4, 5}}) ==
        Shape{2, 9, 4, 5});
  CHECK(y(Resize{.to = {8, 3}}, {{2, 3, 4, 5}}) == Shape{2, 3, 8, 3});
  CHECK(y(channel_shuffle({2, 6, 4, 5}, 3), {{2, 6, 4, 5}}) == Shape{2, 6, 4, 5});
  const auto joined = [](const Shape& a, const Shape& b) { return infer(Binary{BinaryFunction::divide}, {a, b}).y; };
  CHECK(joined({2, 3, 1, 1}, {2, 3, 4, 5}) == Shape{2, 3, 4, 5});
  CHECK(joined({2, 1, 4, 1}, {2, 3, 1, 5}) == Shape{2, 3, 4, 5});
  CHECK_THROWS_MATCHES(joined({2, 3, 4, 5}, {1, 3, 1, 1}), ShapeError,
                       Says("divide", "2x3x4x5", "1x3x1x1", "differ in images", "use a scale_shift"));
  CHECK_THROWS_MATCHES(joined({2, 3, 4, 5}, {2, 3, 4, 2}), ShapeError, Says("neither has 1 of them"));
  CHECK_THROWS_AS(infer(Binary{BinaryFunction::multiply}, {{2, 3, 4, 5}}), ShapeError);
  CHECK_THROWS_AS(infer(Binary{static_cast<BinaryFunction>(6)}, {{2, 3, 4, 5}, {2, 3, 4, 5}}), UsageError);
  const Shape x{2, 8, 4, 6};
  CHECK(y(pixel_shuffle(x, 2), {x}) == Shape{2, 2, 8, 12});
  CHECK(y(pixel_unshuffle(x, 2), {x}) == Shape{2, 32, 2, 3});
  CHECK_THROWS_WITH(channel_shuffle(x, 3), "channel_shuffle: channels: 8 is not a multiple of 3");
  CHECK_THROWS_AS(channel_shuffle(x, 0), ShapeError);
  CHECK_THROWS_AS(pixel_shuffle(x, 4), ShapeError);
  CHECK_THROWS_AS(pixel_unshuffle(x, 4), ShapeError);
  CHECK(complaint(Reorder{{8, 24}, {1, 0}, 24, {1, 7}}, {x}) ==
        "reorder(8x24, order 1x0, to 24x1x7): an image has 192 elements, but the extents or the result have another "
        "number; x: 2x8x4x6");
  CHECK_THROWS_AS(infer(Reorder{{8, 24}, {1, 1}, 24, {1, 8}}, {x}), ShapeError);
  CHECK_THROWS_AS(infer(Reorder{{8, 24}, {0}, 24, {1, 8}}, {x}), ShapeError);
  CHECK(infer(GroupNorm{.groups = 3}, {{2, 6, 4, 5}}).params == Shapes{{1, 6, 1, 1}, {1, 6, 1, 1}});
  CHECK(infer(LayerNorm{.affine = false}, {{2, 6, 4, 5}}).params.empty());
  CHECK(complaint(GroupNorm{.groups = 4}, {{2, 6, 4, 5}}) ==
        "group_norm(4): 6 channels are not a multiple of the groups; x: 2x6x4x5");
  CHECK(infer(Reduce{ReduceBy::sum, true, false, false}, {{2, 3, 4, 5}}).y == Shape{2, 1, 4, 5});
  CHECK(infer(Reduce{ReduceBy::max, false, true, true}, {{2, 3, 4, 5}}).y == Shape{2, 3, 1, 1});
  CHECK_THROWS_WITH(infer(Reduce{ReduceBy::mean}, {{2, 3, 4, 5}}),
                    "reduce(mean): no axis: set channels, rows or columns; x: 2x3x4x5");
  CHECK_THROWS_AS(infer(Reduce{static_cast<ReduceBy>(3), true}, {{2, 3, 4, 5}}), UsageError);
  CHECK(infer(PRelu{}, {{2, 3, 4, 5}}).params == Shapes{{1, 3, 1, 1}});
  CHECK(infer(PRelu{.by_channel = false}, {{2, 3, 4, 5}}).params == Shapes{{1, 1, 1, 1}});
  CHECK(infer(ScaleShift{}, {{2, 3, 4, 5}}).state == Shapes{{1, 3, 1, 1}, {1, 3, 1, 1}});
  CHECK(infer(ScaleShift{.by_channel = false}, {{2, 3, 4, 5}}).state == Shapes{{1, 1, 1, 1}, {1, 1, 1, 1}});
}

TEST_CASE("an error has the op with its parameters, the reason, and every shape") {
  CHECK(complaint(Conv{.channels = 64, .kernel = 7, .stride = 2}, {{1, 3, 5, 224}}) ==
        "conv(64, 7x7, stride 2x2): a window of 7 rows does not fit into 5; x: 1x3x5x224");
  CHECK(complaint(Conv{.channels = 64, .kernel = 3, .pad = {1, 0}}, {{1, 3, 5, 2}}) ==
        "conv(64, 3x3, pad 1x0): a window of 3 columns does not fit into 2; x: 1x3x5x2");
  CHECK(complaint(Conv{.channels = 6, .kernel = 1, .groups = 4}, {{1, 8, 1, 1}}) ==
        "conv(6, 1x1, groups 4): channels are not a multiple of the groups; x: 1x8x1x1");
  CHECK(complaint(Conv{.channels = 8, .kernel = 1, .groups = 4}, {{1, 6, 1, 1}}) ==
        "conv(8, 1x1, groups 4): 6 input channels are not a multiple of the groups; x: 1x6x1x1");
  CHECK(complaint(Add{}, {{1, 3, 5, 5}, {1, 4, 5, 5}}) == "add: the inputs differ in shape; x: 1x3x5x5, 1x4x5x5");
  CHECK(complaint(Concat{}, {{1, 3, 5, 5}, {1, 3, 5, 6}}) ==
        "concat: the inputs may differ only in their channels; x: 1x3x5x5, 1x3x5x6");
  CHECK(complaint(Slice{.first = 1, .count = 3}, {{1, 3, 1, 1}}) ==
        "slice(first 1, channels 3): the input has only 3 channels; x: 1x3x1x1");
  CHECK(complaint(Slice{.axis = Axis::row, .first = 1, .count = 2, .step = 4}, {{1, 3, 5, 1}}) ==
        "slice(first 1, rows 2, step 4): the input has only 5 rows; x: 1x3x5x1");
  CHECK(complaint(Concat{Axis::row}, {{1, 3, 5, 5}, {1, 3, 4, 6}}) ==
        "concat(rows): the inputs may differ only in their rows; x: 1x3x5x5, 1x3x4x6");
  CHECK(complaint(Pad{.before = 1, .after = 1, .by = PadBy::edge, .channels_after = 1}, {{1, 3, 5, 5}}) ==
        "pad(before 1x1, after 1x1, channels 0 and 1, by edge): channels are padded by value alone; x: 1x3x5x5");
  CHECK(complaint(MaxPool{.window = 3, .stride = 1, .pad = 2}, {{1, 1, 9, 9}}) ==
        "max_pool(3x3, stride 1x1, pad 2x2): pad is more than half the window, so that a window could be outside the "
        "image; x: 1x1x9x9");
}

TEST_CASE("a wrong number of inputs is an error with that number") {
  const Shape x{1, 1, 1, 1};
  CHECK(complaint(Relu{}, {}) == "relu: takes 1 input, not 0");
  CHECK(complaint(Relu{}, {x, x}) == "relu: takes 1 input, not 2; x: 1x1x1x1, 1x1x1x1");
  CHECK(complaint(Add{}, {x}) == "add: takes 2 or more inputs, not 1; x: 1x1x1x1");
  CHECK(complaint(Concat{}, {}) == "concat: takes 1 or more inputs, not 0");
  CHECK(complaint(Input{x}, {x}) == "input(1x1x1x1): takes 0 inputs, not 1; x: 1x1x1x1");
}

TEST_CASE("parameters out of range are refused by name") {
  const Shapes x{{1, 4, 8, 8}};
  CHECK(complaint(Conv{.channels = 0, .kernel = 1}, x) ==
        "conv(0, 1x1): channels is 0, but must be at least 1; x: 1x4x8x8");
  const Op op = GENERATE(
      as<Op>{}, Conv{.channels = -1, .kernel = 1}, Conv{.channels = 1, .kernel = 0}, Conv{.channels = 1, .kernel = -3},
      ConvTranspose{.channels = 0, .kernel = 1}, ConvTranspose{.channels = 1, .kernel = 1, .output_pad = -1},
      ConvTranspose{.channels = 3, .kernel = 1, .groups = 2}, Conv{.channels = 1, .kernel = {1, 0}},
      Conv{.channels = 1, .kernel = 1, .stride = 0}, Conv{.channels = 1, .kernel = 1, .stride = {1, -1}},
      Conv{.channels = 1, .kernel = 1, .pad = -1}, Conv{.channels = 1, .kernel = 1, .dilation = 0},
      Conv{.channels = 1, .kernel = 1, .groups = 0}, MaxPool{.window = 0, .stride = 1},
      MaxPool{.window = 1, .stride = 0}, MaxPool{.window = -1, .stride = 1},
      MaxPool{.window = 1, .stride = 1, .pad = -1}, AveragePool{.window = 2, .stride = {1, 0}}, FullyConnected{0},
      FullyConnected{-1}, BatchNorm{.epsilon = 0}, BatchNorm{.epsilon = not_a_number}, BatchNorm{.epsilon = infinity},
      BatchNorm{.momentum = -0.1}, BatchNorm{.momentum = 1.1}, BatchNorm{.momentum = not_a_number},
      BatchNorm{.ranks = 0}, GroupNorm{.groups = 0}, GroupNorm{.groups = 1, .epsilon = 0},
      LayerNorm{.epsilon = infinity}, Lrn{.size = 0}, Lrn{.alpha = not_a_number}, Lrn{.alpha = -1},
      Lrn{.beta = infinity}, Lrn{.k = 0}, Dropout{.rate = 1}, Dropout{.rate = -0.5}, Dropout{.rate = not_a_number},
      Slice{.first = -1, .count = 1}, Slice{.first = 0, .count = 0}, Slice{.first = 0, .count = 1, .step = 0},
      Pad{.before = 0, .after = 0, .channels_before = -1}, Pointwise{Function::clip, 1, 0},
      Pointwise{Function::clip, not_a_number, 0}, Pointwise{Function::clip, 0, not_a_number},
      Pointwise{Function::clip, -1e300, 0}, Pointwise{Function::leaky_relu, -0.1},
      Pointwise{Function::leaky_relu, infinity}, Pointwise{Function::elu, -1, 1},
      Pointwise{Function::elu, 1, not_a_number}, Pointwise{Function::celu, 0}, Pointwise{Function::pow, 0},
      Pointwise{Function::pow, infinity}, Pointwise{Function::hard_sigmoid, infinity, 0.5},
      Pointwise{Function::hard_sigmoid, 1, not_a_number}, Pad{.before = -1, .after = 1},
      Pad{.before = 0, .after = {0, -1}}, Pad{.before = 0, .after = 1, .value = not_a_number}, Reorder{{0}, {0}, 1, 1},
      Reorder{{256}, {0}, 256, {0, 1}}, Resize{.to = {0, 4}}, Resize{.to = {4, -1}},
      Resize{.to = 4, .step_w = not_a_number}, Resize{.to = 4, .step_h = -1}, Resize{.to = 4, .step_h = infinity},
      Resize{.to = 4, .by = ResizeBy::linear_aligned, .step_h = 0.5});
  CAPTURE(to_string(op));
  CHECK_THROWS_AS(infer(op, x), ShapeError);
}

TEST_CASE("huge parameters end in an error, never in an overflow") {
  const Op op = GENERATE(
      as<Op>{}, Conv{.channels = 1, .kernel = huge}, Conv{.channels = 1, .kernel = 1, .pad = huge},
      Conv{.channels = 1, .kernel = huge, .pad = huge}, Conv{.channels = huge, .kernel = 1},
      Conv{.channels = 1, .kernel = 3, .dilation = huge}, Conv{.channels = 1, .kernel = huge, .dilation = huge},
      Conv{.channels = 1, .kernel = 100000, .pad = 100000}, Conv{.channels = 1, .kernel = 1, .groups = huge},
      ConvTranspose{.channels = 1, .kernel = huge}, ConvTranspose{.channels = 1, .kernel = 1, .stride = huge},
      ConvTranspose{.channels = 1, .kernel = huge, .dilation = huge}, MaxPool{.window = huge, .stride = huge},
      MaxPool{.window = huge, .stride = 1, .pad = huge},
      MaxPool{.window = huge, .stride = 1, .pad = huge / 2, .rounding = Rounding::up},
      AveragePool{.window = huge, .stride = 3, .pad = huge / 2, .rounding = Rounding::up},
      Slice{.first = huge, .count = huge}, FullyConnected{INT_MIN}, Pad{.before = huge, .after = huge},
      Pad{.before = {huge, 0}, .after = 0}, Pad{.before = 1 << 15, .after = 1 << 15},
      Reorder{{huge, huge, huge}, {0, 1, 2}, huge, huge}, Resize{.to = {huge, 1}}, Resize{.to = huge});
  CAPTURE(to_string(op));
  CHECK_THROWS_AS(infer(op, {{huge, 4, 8, 8}}), ShapeError);
}

TEST_CASE("a padded extent beyond 2^31 - 1 is an error even if no window reaches its end") {
  CHECK(complaint(Conv{.channels = 1, .kernel = 1, .stride = (1 << 30) + 10, .pad = 1 << 30}, {{1, 1, 8, 8}}) ==
        "conv(1, 1x1, stride 1073741834x1073741834, pad 1073741824x1073741824): with its padding the input has more "
        "than 2^31 - 1 rows; x: 1x1x8x8");
}

TEST_CASE("a huge stride leaves one window") {
  CHECK(y(MaxPool{.window = huge, .stride = huge, .pad = 1, .rounding = Rounding::up}, {{1, 1, 8, 8}}) ==
        Shape{1, 1, 1, 1});
  CHECK(y(Conv{.channels = 1, .kernel = 3, .stride = huge}, {{1, 1, 8, 8}}) == Shape{1, 1, 1, 1});
  CHECK(y(MaxPool{.window = 3, .stride = huge, .rounding = Rounding::up}, {{1, 1, 8, 8}}) == Shape{1, 1, 1, 1});
}

TEST_CASE("inputs and results have at most 2^31 - 1 elements per image, and more in a batch") {
  CHECK(y(Input{{huge, huge, 1, 1}}, {}) == Shape{huge, huge, 1, 1});
  CHECK(complaint(Input{{1, 65536, 32768, 1}}, {}) ==
        "input(1x65536x32768x1): the result has more than 2^31 - 1 elements per image: 1x65536x32768x1");
  CHECK(complaint(Input{{1, 0, 1, 1}}, {}) ==
        "input(1x0x1x1): the result is empty: 1x0x1x1, but every extent must be at least 1");
  CHECK_THROWS_AS(infer(Input{{1, huge, huge, huge}}, {}), ShapeError);
  CHECK_THROWS_AS(infer(Relu{}, {{1, huge, huge, huge}}), ShapeError);
  CHECK_THROWS_AS(infer(Relu{}, {{-1, 1, 1, 1}}), ShapeError);
  CHECK_THROWS_AS(infer(Concat{}, {{1, huge, 1, 1}, {1, huge, 1, 1}}), ShapeError);
  CHECK_THROWS_AS(infer(Conv{.channels = 1 << 20, .kernel = 1}, {{1, 1, 64, 64}}), ShapeError);
}
