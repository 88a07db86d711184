// The cost of every pass of every op, computed by hand.

#include <climits>
#include <tuple>

#include "lamina/op.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

/// Compares the cost with `flops`, and with the bytes of `elements` f32 elements.
void check(const Op& op, const std::vector<Shape>& x, Pass pass, double flops, double elements) {
  CAPTURE(to_string(op), to_string(pass));
  CHECK(cost(op, x, pass).flops == flops);
  CHECK(cost(op, x, pass).bytes == 4 * elements);
}

struct Work {
  double flops, elements;
};

void check(const Op& op, const std::vector<Shape>& x, Work forward, Work backward_data) {
  check(op, x, Pass::forward, forward.flops, forward.elements);
  check(op, x, Pass::backward_data, backward_data.flops, backward_data.elements);
}

}  // namespace

TEST_CASE("multiply-adds of convolutions and fully connected ops are exact") {
  // The published numbers of VGG-16's conv1_2 and fc6, and of AlexNet's grouped conv2.
  CHECK(multiply_adds(Conv{.channels = 64, .kernel = 3, .pad = 1}, {{1, 64, 224, 224}}) == 1'849'688'064);
  CHECK(multiply_adds(FullyConnected{4096}, {{1, 512, 7, 7}}) == 102'760'448);
  CHECK(multiply_adds(Conv{.channels = 256, .kernel = 5, .pad = 2, .groups = 2}, {{1, 96, 27, 27}}) == 223'948'800);
  CHECK(multiply_adds(FullyConnected{4096}, {{16, 512, 7, 7}}) == 16 * std::int64_t{102'760'448});
}

TEST_CASE("no other op has multiply-adds") {
  CHECK(multiply_adds(MaxPool{.window = 2, .stride = 2}, {{1, 1, 4, 4}}) == 0);
  CHECK(multiply_adds(BatchNorm{}, {{1, 1, 4, 4}}) == 0);
  CHECK(multiply_adds(Input{{1, 1, 4, 4}}, {}) == 0);
}

TEST_CASE("more multiply-adds than fit into 64 bits are an error") {
  CHECK_THROWS_AS(multiply_adds(FullyConnected{INT_MAX}, {{INT_MAX, INT_MAX, 1, 1}}), ShapeError);
  CHECK(cost(FullyConnected{INT_MAX}, {{INT_MAX, INT_MAX, 1, 1}}, Pass::forward).flops > 1e28);
}

TEST_CASE("a convolution's three passes have equal flops, and the bytes of the tensors of each pass") {
  const Conv op{.channels = 6, .kernel = 3};
  const std::vector<Shape> x{{2, 4, 5, 5}};  // 200 elements; y: 2x6x3x3, 108; w: 216; bias: 6
  const double flops = 2 * 108 * 36;
  check(op, x, Pass::forward, flops, 200 + 108 + 216 + 6);
  check(op, x, Pass::backward_params, flops, 200 + 108 + 216 + 6);
  check(op, x, Pass::backward_data, flops, 200 + 108 + 216);
  check(op, x, Pass::recompute, flops, 200 + 108 + 216 + 6);
  check(op, x, Pass::prepare, 0, 0);
}

TEST_CASE("a fully connected op's three passes have equal flops, and the bytes of the tensors of each pass") {
  const FullyConnected op{.outputs = 5, .bias = false};
  const std::vector<Shape> x{{2, 3, 2, 2}};  // 24 elements; y: 10; w: 60
  check(op, x, Pass::forward, 2 * 10 * 12, 24 + 10 + 60);
  check(op, x, Pass::backward_params, 2 * 10 * 12, 24 + 10 + 60);
  check(op, x, Pass::backward_data, 2 * 10 * 12, 24 + 10 + 60);
}

TEST_CASE("groups divide the cost of a convolution") {
  const std::vector<Shape> x{{1, 4, 3, 3}};
  CHECK(cost(Conv{.channels = 4, .kernel = 3}, x, Pass::backward_data).flops == 2 * 4 * 36);
  CHECK(cost(Conv{.channels = 4, .kernel = 3, .groups = 2}, x, Pass::backward_data).flops == 2 * 4 * 18);
}

TEST_CASE("a pool's flops are its window size for each result") {
  const std::vector<Shape> x{{1, 2, 4, 4}};  // 32 elements; y: 1x2x2x2, 8
  check(MaxPool{.window = 2, .stride = 2}, x, {4 * 8, 40}, {8, 40});
  check(MaxPool{.window = 2, .stride = 2}, x, Pass::backward_params, 0, 0);
  check(AveragePool{.window = 2, .stride = 2}, x, {4 * 8, 40}, {4 * 8, 40});
  check(GlobalAveragePool{}, x, {32, 34}, {32, 34});
  check(Reduce{ReduceBy::mean, true, false, false}, x, {32, 48}, {16, 48});
  check(Reduce{ReduceBy::sum, true, false, false}, x, Pass::backward_data, 0, 48);
}

TEST_CASE("a batch norm reads its values and its statistics once") {
  const std::vector<Shape> x{{2, 3, 2, 2}};  // 24 elements, 3 channels
  check(BatchNorm{}, x, Pass::forward, 6 * 24, 24 + 24 + 6 + 6);
  check(BatchNorm{}, x, Pass::backward_params, 4 * 24, 24 + 24 + 6);
  check(BatchNorm{}, x, Pass::backward_data, 4 * 24, 24 + 24 + 24 + 6);
  check(BatchNorm{}, x, Pass::recompute, 6 * 24, 24 + 24 + 6);
}

TEST_CASE("group and layer norms read their values once, and for the data gradient the scale") {
  const std::vector<Shape> x{{2, 3, 2, 2}};  // 24 elements, 3 channels
  for (const Op& op : {Op{GroupNorm{.groups = 3}}, Op{LayerNorm{}}}) {
    check(op, x, Pass::forward, 6 * 24, 24 + 24 + 6);
    check(op, x, Pass::backward_params, 4 * 24, 24 + 24 + 6);
    check(op, x, Pass::backward_data, 4 * 24, 24 + 24 + 24 + 3);
  }
  check(LayerNorm{.affine = false}, x, Pass::forward, 6 * 24, 24 + 24);
  check(LayerNorm{.affine = false}, x, Pass::backward_params, 0, 0);
}

TEST_CASE("elementwise ops and their gradients have the documented cost") {
  const std::vector<Shape> x{{1, 10, 1, 1}};
  check(Relu{}, x, {10, 20}, {10, 30});
  check(Softmax{}, x, {50, 20}, {40, 30});
  check(Pointwise{Function::sigmoid}, x, {30, 20}, {30, 30});
  check(Pointwise{Function::tanh}, x, {10, 20}, {30, 30});
  check(Lrn{.size = 5}, x, {100, 20}, {110, 30});
  check(Relu{}, x, Pass::backward_params, 0, 0);
  CHECK(cost(Lrn{.size = INT_MAX}, x, Pass::forward).flops == 10 * (2147483647.0 + 5));
}

TEST_CASE("a loss reads logits and labels twice, and writes the gradient of the logits") {
  const Shape logits{6, 5, 1, 1}, labels{6, 1, 1, 1};
  check(SoftmaxCrossEntropy{}, {logits, labels}, {4 * 30, 30 + 6 + 2}, {4 * 30, 30 + 6 + 2 + 30});
  check(SigmoidCrossEntropy{}, {labels, labels}, {8 * 6, 6 + 6 + 2}, {5 * 6, 6 + 6 + 2 + 6});
}

TEST_CASE("an embedding reads at most one row for each id, and writes the gradient of the whole table") {
  const std::vector<Shape> ids{{2, 1, 3, 1}};  // 6 ids
  check(Embedding{.vocabulary = 100, .features = 4}, ids, Pass::forward, 0, 6 + 24 + 24);
  check(Embedding{.vocabulary = 5, .features = 4}, ids, Pass::forward, 0, 6 + 24 + 20);
  check(Embedding{.vocabulary = 100, .features = 4}, ids, Pass::recompute, 0, 6 + 24 + 24);
  check(Embedding{.vocabulary = 100, .features = 4}, ids, Pass::backward_params, 24, 6 + 24 + 400);
  check(Embedding{.vocabulary = 100, .features = 4}, ids, Pass::backward_data, 0, 0);
}

TEST_CASE("a recurrent op multiplies at every step, and with ids reads rows instead") {
  const Recurrent op{.hidden = 5};
  const std::vector<Shape> x{{2, 3, 7, 1}};  // 42 elements; y: 70; weights: 20 x 3 and 20 x 5; bias: 20
  const double products = 2 * 7 * 20 * (3 + 5), hidden = 2 * 7 * 5;
  CHECK(multiply_adds(op, x) == static_cast<std::int64_t>(products));
  check(op, x, Pass::forward, 2 * products + 15 * hidden, 42 + 70 + 60 + 100 + 20);
  check(op, x, Pass::backward_params, 2 * products + 21 * hidden, 42 + 70 + 60 + 100 + 20);
  check(op, x, Pass::backward_data, 2 * products, 42 + 70 + 60 + 100);
  const Recurrent gru{.hidden = 5, .cell = Cell::gru};
  const double fewer = 2 * 7 * 15 * (3 + 5);
  CHECK(multiply_adds(gru, x) == static_cast<std::int64_t>(fewer));
  check(gru, x, Pass::forward, 2 * fewer + 13 * hidden, 42 + 70 + 45 + 75 + 20);
  check(gru, x, Pass::backward_params, 2 * fewer + 17 * hidden, 42 + 70 + 45 + 75 + 20);
  check(gru, x, Pass::backward_data, 2 * fewer, 42 + 70 + 45 + 75);
  const Recurrent text{.hidden = 128, .steps = Steps::last, .vocabulary = 57};
  CHECK(multiply_adds(text, {{1, 1, 40, 1}}) == 2'621'440);
  CHECK(multiply_adds(Recurrent{.hidden = 128}, {{1, 57, 40, 1}}) + 128 * 57 ==
        3'796'096);  // lstm_text and its last layer
  check(text, {{1, 1, 40, 1}}, Pass::backward_data, 0, 0);
  CHECK_THROWS_AS(multiply_adds(Recurrent{.hidden = 1 << 28, .steps = Steps::last}, {{INT_MAX, 1, INT_MAX, 1}}),
                  ShapeError);
}

TEST_CASE("a dropout reads its step, one word of eight bytes") {
  const std::vector<Shape> x{{1, 10, 1, 1}};
  CHECK(cost(Dropout{}, x, Pass::forward).flops == 10);
  CHECK(cost(Dropout{}, x, Pass::forward).bytes == 88);
  CHECK(cost(Dropout{}, x, Pass::backward_data).bytes == 88);
}

TEST_CASE("pointwise ops read x or y for their gradients") {
  const std::vector<Shape> x{{1, 10, 1, 1}};
  for (const auto& [op, forward, backward] :
       std::vector<std::tuple<Op, double, double>>{{Pointwise{Function::clip, 0, 6}, 20, 20},
                                                   {Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, 40, 20},
                                                   {Pointwise{Function::hard_swish}, 50, 50},
                                                   {Pointwise{Function::silu}, 40, 80},
                                                   {Pointwise{Function::gelu}, 50, 110},
                                                   {Pointwise{Function::leaky_relu, 0.1}, 20, 20}}) {
    check(op, x, {forward, 20}, {backward, 30});
    check(op, x, Pass::backward_params, 0, 0);
  }
}

TEST_CASE("a transposed convolution multiplies each x by every weight of its channel, in every pass") {
  const ConvTranspose op{.channels = 3, .kernel = 2, .stride = 2};
  const Shape x{1, 4, 5, 5};  // y 1x3x10x10, weights 4x3x2x2
  check(op, {x}, Pass::forward, 2 * 100 * 12, 100 + 48 + 3 + 300);
  check(op, {x}, Pass::backward_params, 2 * 100 * 12, 100 + 300 + 48 + 3);
  check(op, {x}, Pass::backward_data, 2 * 100 * 12, 300 + 48 + 100);
  CHECK(multiply_adds(op, {x}) == 1200);
}

TEST_CASE("a multiply reads both factors for both gradients, and sums the gradient of a factor per channel") {
  const Shape x{2, 3, 2, 2};
  check(Binary{BinaryFunction::multiply}, {x, x}, {24, 72}, {48, 48 + 24 + 48});
  check(Binary{BinaryFunction::multiply}, {x, {2, 3, 1, 1}}, {24, 54}, {72, 30 + 24 + 30});
  check(Binary{BinaryFunction::divide}, {x, {2, 1, 2, 2}}, Pass::backward_data, 24 * 6, 32 + 24 + 32);
  check(Binary{BinaryFunction::subtract}, {{2, 3, 1, 1}, {2, 1, 2, 2}}, {24, 6 + 8 + 24}, {24 * 3, 24 + 6 + 8});
}

TEST_CASE("a scale and shift reads its parameters in every pass") {
  const Shape x{2, 3, 2, 2};
  for (const Pass pass : {Pass::forward, Pass::recompute}) check(ScaleShift{}, {x}, pass, 48, 24 + 24 + 6);
  check(ScaleShift{.by_channel = false}, {x}, Pass::backward_data, 24, 24 + 24 + 2);
}

TEST_CASE("joins and slices count the bytes that they copy") {
  const Shape x{1, 4, 1, 1};
  check(Add{}, {x, x, x}, {8, 16}, {0, 16});
  check(Concat{}, {x, x}, {0, 16}, {0, 16});
  check(Slice{.first = 1, .count = 2}, {x}, {0, 4}, {0, 6});
  check(Slice{.axis = Axis::row, .first = 1, .count = 1}, {{1, 2, 3, 1}}, Pass::forward, 0, 4);
  check(channel_shuffle(x, 2), {x}, Pass::forward, 0, 8);
  check(Pad{.before = 1, .after = 0}, {x}, {0, 20}, {0, 8});
  check(Pad{.before = 1, .after = 0, .by = PadBy::edge}, {x}, Pass::backward_data, 12, 20);
  check(Resize{.to = {2, 3}}, {x}, {0, 28}, {24, 28});
  check(Resize{.to = {2, 3}, .by = ResizeBy::linear}, {x}, Pass::forward, 9 * 24, 28);
  check(Input{x}, {}, Pass::forward, 0, 0);
}

TEST_CASE("bytes depend on the element type") {
  const std::vector<Shape> x{{1, 10, 1, 1}};
  CHECK(cost(Relu{}, x, Pass::forward, DType::f64).bytes == 160);
  CHECK(cost(Relu{}, x, Pass::forward, DType::f16).bytes == 40);
  // In half precision, parameters, running statistics, ids, labels and losses are f32.
  const Conv conv{.channels = 6, .kernel = 3};
  const std::vector<Shape> image{{2, 4, 5, 5}};  // 200 elements, as above
  CHECK(cost(conv, image, Pass::forward, DType::bf16).bytes == 2 * (200 + 108) + 4 * (216 + 6));
  CHECK(cost(conv, image, Pass::backward_params, DType::bf16).bytes == 2 * (200 + 108) + 4 * (216 + 6));
  CHECK(cost(conv, image, Pass::backward_data, DType::bf16).bytes == 2 * (200 + 108) + 4 * 216);
  CHECK(cost(BatchNorm{}, {{2, 3, 2, 2}}, Pass::forward, DType::bf16).bytes == 2 * (24 + 24) + 4 * (6 + 6));
  CHECK(cost(SoftmaxCrossEntropy{}, {{3, 7, 1, 1}, {3, 1, 1, 1}}, Pass::forward, DType::bf16).bytes ==
        2 * 21 + 4 * (3 + 2));
  CHECK(cost(Embedding{50, 3}, {{2, 1, 4, 1}}, Pass::forward, DType::bf16).bytes == 4 * 8 + 4 * 24 + 2 * 24);
}

TEST_CASE("cost() refuses the shapes that infer() refuses") {
  CHECK_THROWS_AS(cost(Add{}, {{1, 1, 1, 1}}, Pass::forward), ShapeError);
  CHECK_THROWS_AS(multiply_adds(Conv{.channels = 1, .kernel = 3}, {{1, 1, 1, 1}}), ShapeError);
}
