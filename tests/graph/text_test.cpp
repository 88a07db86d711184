// The texts of shapes, types, ops and errors.

#include "lamina/op.h"
#include "tests/support/catch.h"

using namespace lamina;

TEST_CASE("a shape prints its four extents") { CHECK(to_string(Shape{32, 3, 224, 224}) == "32x3x224x224"); }

TEST_CASE("element types have names and sizes") {
  CHECK(to_string(DType::f64) == "f64");
  CHECK(to_string(DType::f32) == "f32");
  CHECK(to_string(DType::f16) == "f16");
  CHECK(to_string(DType::bf16) == "bf16");
  CHECK(to_string(DType::u64) == "u64");
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::f16) == 2);
  CHECK(size_of(DType::bf16) == 2);
  CHECK(size_of(DType::u64) == 8);
}

TEST_CASE("layouts and passes have names") {
  CHECK(to_string(Layout::nchw) == "nchw");
  CHECK(to_string(Layout::nhwc) == "nhwc");
  const char* names[] = {"forward", "backward_params", "backward_data", "prepare", "recompute"};
  for (std::size_t i = 0; i < std::size(names); ++i) CHECK(to_string(static_cast<Pass>(i)) == names[i]);
}

TEST_CASE("a tensor is dense if its pitch leaves no gap between images") {
  const Shape shape{2, 3, 4, 5};
  CHECK(dense_pitch(shape, Layout::nchw) == 60);
  CHECK(dense_pitch(shape, Layout::nhwc) == 3);
  CHECK(Tensor{nullptr, shape, DType::f32, Layout::nchw, 60}.dense());
  CHECK_FALSE(Tensor{nullptr, shape, DType::f32, Layout::nchw, 61}.dense());
}

TEST_CASE("an op's text has every parameter that is not the default") {
  const std::vector<std::pair<Op, const char*>> texts = {
      {Input{{1, 3, 8, 8}}, "input(1x3x8x8)"},
      {Conv{.channels = 64, .kernel = 7, .stride = 2, .pad = 3}, "conv(64, 7x7, stride 2x2, pad 3x3)"},
      {Conv{.channels = 8, .kernel = {1, 3}}, "conv(8, 1x3)"},
      {Conv{.channels = 8, .kernel = 3, .dilation = {2, 1}, .groups = 4, .bias = false},
       "conv(8, 3x3, dilation 2x1, groups 4, no bias)"},
      {MaxPool{.window = 3, .stride = 2}, "max_pool(3x3, stride 2x2)"},
      {MaxPool{.window = 3, .stride = 2, .pad = 1, .rounding = Rounding::up},
       "max_pool(3x3, stride 2x2, pad 1x1, rounded up)"},
      {AveragePool{.window = 2, .stride = 2, .count_padding = true}, "average_pool(2x2, stride 2x2, padding counted)"},
      {GlobalAveragePool{}, "global_average_pool"},
      {BatchNorm{}, "batch_norm"},
      {BatchNorm{.epsilon = 1e-3, .momentum = 0.25}, "batch_norm(epsilon 0.001, momentum 0.25)"},
      {Lrn{}, "lrn"},
      {Lrn{.size = 11, .alpha = 0.0011, .beta = 0.5, .k = 2}, "lrn(size 11, alpha 0.0011, beta 0.5, k 2)"},
      {Relu{}, "relu"},
      {FullyConnected{10}, "fully_connected(10)"},
      {FullyConnected{.outputs = 10, .bias = false}, "fully_connected(10, no bias)"},
      {Dropout{}, "dropout"},
      {Dropout{.rate = 0.25, .seed = 7}, "dropout(rate 0.25, seed 7)"},
      {Softmax{}, "softmax"},
      {Softmax{.axis = Axis::row, .log = true}, "softmax(log, along rows)"},
      {Softmax{.axis = Axis::column}, "softmax(along columns)"},
      {Reduce{ReduceBy::max, true, false, true}, "reduce(max, channels, columns)"},
      {Reduce{ReduceBy::mean, false, true, false}, "reduce(mean, rows)"},
      {Pointwise{Function::sigmoid}, "sigmoid"},
      {Pointwise{Function::tanh}, "tanh"},
      {SoftmaxCrossEntropy{}, "softmax_cross_entropy"},
      {SoftmaxCrossEntropy{.clip = 1e-7}, "softmax_cross_entropy(clip 1e-07)"},
      {SigmoidCrossEntropy{.clip = 0.25}, "sigmoid_cross_entropy(clip 0.25)"},
      {Embedding{.vocabulary = 20000, .features = 128}, "embedding(20000, 128)"},
      {Recurrent{.hidden = 64}, "lstm(64)"},
      {Recurrent{.hidden = 64, .cell = Cell::gru}, "gru(64)"},
      {Recurrent{.hidden = 128, .steps = Steps::last, .gates = Gates::hard_sigmoid, .reverse = true, .vocabulary = 57},
       "lstm(128, last step, hard sigmoid, reverse, vocabulary 57)"},
      {Pointwise{Function::clip, 0, 6}, "clip(0, 6)"},
      {Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, "hard_sigmoid"},
      {Pointwise{Function::hard_sigmoid, 0.2, 0.25}, "hard_sigmoid(alpha 0.2, beta 0.25)"},
      {Pointwise{Function::hard_swish}, "hard_swish"},
      {Pointwise{Function::silu}, "silu"},
      {Pointwise{Function::leaky_relu, 0.1}, "leaky_relu(0.1)"},
      {Pointwise{Function::elu, 1, 1}, "elu"},
      {Pointwise{Function::elu, 1.5, 1.25}, "elu(alpha 1.5, scale 1.25)"},
      {Pointwise{Function::celu, 0.5}, "celu(alpha 0.5)"},
      {Pointwise{Function::gelu_tanh}, "gelu_tanh"},
      {Pointwise{Function::pow, -0.5}, "pow(-0.5)"},
      {Add{}, "add"},
      {Binary{BinaryFunction::multiply}, "multiply"},
      {Binary{BinaryFunction::add}, "broadcast_add"},
      {GroupNorm{.groups = 32}, "group_norm(32)"},
      {GroupNorm{.groups = 8, .epsilon = 1e-6, .affine = false}, "group_norm(8, epsilon 1e-06, not affine)"},
      {LayerNorm{.epsilon = 1e-6}, "layer_norm(epsilon 1e-06)"},
      {ScaleShift{}, "scale_shift"},
      {PRelu{}, "prelu"},
      {PRelu{.by_channel = false}, "prelu(one for all channels)"},
      {ScaleShift{.by_channel = false}, "scale_shift(one for all channels)"},
      {Pad{.before = {1, 2}, .after = 0, .value = 0.5}, "pad(before 1x2, after 0x0, value 0.5)"},
      {Pad{.before = 1, .after = 1, .by = PadBy::reflect}, "pad(before 1x1, after 1x1, by reflect)"},
      {Resize{.to = {4, 8}}, "resize(4x8)"},
      {Resize{.to = 8, .by = ResizeBy::linear, .step_h = 0.5}, "resize(8x8, step 0.5x0, linear)"},
      {channel_shuffle({1, 6, 2, 2}, 2), "channel_shuffle(groups 2)"},
      {Reorder{{4, 6}, {1, 0}, 6, {2, 2}}, "reorder(4x6, order 1x0, to 6x2x2)"},
      {Concat{}, "concat"},
      {Concat{Axis::column}, "concat(columns)"},
      {Slice{.first = 1, .count = 1000}, "slice(first 1, channels 1000)"},
  };
  for (const auto& [op, text] : texts) CHECK(to_string(op) == text);
}

TEST_CASE("parameters and state have PyTorch's names") {
  using Names = std::vector<std::string_view>;
  CHECK(parameter_names(Conv{.channels = 1, .kernel = 1}) == Names{"weight", "bias"});
  CHECK(parameter_names(Conv{.channels = 1, .kernel = 1, .bias = false}) == Names{"weight"});
  CHECK(parameter_names(FullyConnected{1}) == Names{"weight", "bias"});
  CHECK(parameter_names(FullyConnected{.outputs = 1, .bias = false}) == Names{"weight"});
  for (const Op& op : {Op{BatchNorm{}}, Op{GroupNorm{.groups = 1}}, Op{LayerNorm{}}})
    CHECK(parameter_names(op) == Names{"weight", "bias"});
  for (const Op& op : {Op{GroupNorm{.groups = 1, .affine = false}}, Op{LayerNorm{.affine = false}}})
    CHECK(parameter_names(op).empty());
  CHECK(parameter_names(PRelu{}) == Names{"weight"});
  CHECK(parameter_names(Embedding{.vocabulary = 1, .features = 1}) == Names{"weight"});
  CHECK(parameter_names(Recurrent{.hidden = 1}) == Names{"weight_ih_l0", "weight_hh_l0", "bias_l0"});
  CHECK(parameter_names(Relu{}).empty());
  CHECK(state_names(BatchNorm{}) == Names{"running_mean", "running_var"});
  CHECK(state_names(ScaleShift{}) == Names{"scale", "shift"});
  CHECK(parameter_names(ScaleShift{.learned = true}) == Names{"scale", "shift"});
  CHECK(state_names(Dropout{}) == Names{"step"});
  CHECK(state_names(Conv{.channels = 1, .kernel = 1}).empty());
}

TEST_CASE("running statistics have the type of the values, and a dropout's step is u64") {
  CHECK(state_dtype(BatchNorm{}, DType::f32) == DType::f32);
  CHECK(state_dtype(BatchNorm{}, DType::f64) == DType::f64);
  CHECK(state_dtype(Dropout{}, DType::f32) == DType::u64);
}

TEST_CASE("an OutOfMemory error has the wanted and the free bytes") {
  const OutOfMemory error(1000, 24);
  CHECK(error.wanted_bytes() == 1000);
  CHECK(error.free_bytes() == 24);
  CHECK(std::string(error.what()) == "out of memory: 1000 bytes wanted, 24 bytes free");
}
