// Every op is compared with PyTorch's results and gradients, on the shapes and numbers of data/goldens/make_goldens.py.

#include "lamina/safetensors.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina::test;

namespace {

struct Golden {
  std::string name;
  Op op;
  Mode mode = Mode::training;
};

constexpr Rounding up = Rounding::up;
const std::vector<Golden> goldens = {
    {"plain", Conv{.channels = 4, .kernel = 3, .pad = 1}},
    {"strided", Conv{.channels = 4, .kernel = 3, .stride = 2, .pad = 1, .bias = false}},
    {"rectangular", Conv{.channels = 3, .kernel = {1, 5}, .stride = {2, 1}, .pad = {0, 2}}},
    {"dilated", Conv{.channels = 2, .kernel = {3, 2}, .stride = {1, 2}, .pad = {2, 1}, .dilation = {2, 3}}},
    {"grouped", Conv{.channels = 6, .kernel = 3, .pad = 1, .groups = 2}},
    {"grouped_dilated",
     Conv{.channels = 3, .kernel = 3, .stride = 2, .pad = 2, .dilation = 2, .groups = 3, .bias = false}},
    {"depthwise", Conv{.channels = 10, .kernel = 3, .groups = 5}},
    {"pixelwise", Conv{.channels = 7, .kernel = 1}},
    {"pixelwise_strided", Conv{.channels = 4, .kernel = 1, .stride = 2, .bias = false}},
    {"first", Conv{.channels = 3, .kernel = 11, .stride = 4, .pad = 2}},
    {"plain", ConvTranspose{.channels = 4, .kernel = 3}},
    {"dcgan", ConvTranspose{.channels = 3, .kernel = 4, .stride = 2, .pad = 1, .bias = false}},
    {"output_padded", ConvTranspose{.channels = 3, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}},
    {"rectangular", ConvTranspose{.channels = 4,
                                  .kernel = {3, 2},
                                  .stride = {3, 1},
                                  .pad = {1, 0},
                                  .output_pad = {2, 0},
                                  .dilation = {2, 1},
                                  .groups = 2}},
    {"depthwise", ConvTranspose{.channels = 5, .kernel = 2, .stride = 2, .groups = 5}},
    {"plain", MaxPool{.window = 2, .stride = 2}},
    {"padded", MaxPool{.window = 3, .stride = 2, .pad = 1}},
    {"ceil", MaxPool{.window = 3, .stride = 2, .rounding = up}},
    {"ceil_padded", MaxPool{.window = 3, .stride = 2, .pad = 1, .rounding = up}},
    {"ceil_dropped", MaxPool{.window = 2, .stride = 3, .pad = 1, .rounding = up}},
    {"rectangular", MaxPool{.window = {3, 2}, .stride = {1, 3}, .pad = {1, 0}}},
    {"plain", AveragePool{.window = 2, .stride = 2}},
    {"padded_counted", AveragePool{.window = 3, .stride = 2, .pad = 1, .count_padding = true}},
    {"padded_uncounted", AveragePool{.window = 3, .stride = 2, .pad = 1}},
    {"ceil_counted", AveragePool{.window = 3, .stride = 2, .pad = 1, .rounding = up, .count_padding = true}},
    {"ceil_uncounted", AveragePool{.window = 3, .stride = 2, .pad = 1, .rounding = up}},
    {"ceil_unpadded", AveragePool{.window = {2, 3}, .stride = 2, .rounding = up, .count_padding = true}},
    {"map", GlobalAveragePool{}},
    {"training", BatchNorm{}},
    {"training_vectors", BatchNorm{.epsilon = 1e-3, .momentum = 0.25}},
    {"inference", BatchNorm{}, Mode::inference},
    {"groups", GroupNorm{.groups = 2}},
    {"one_group", GroupNorm{.groups = 1, .epsilon = 1e-3}},
    {"instances", GroupNorm{.groups = 3, .affine = false}},
    {"pixels", LayerNorm{.epsilon = 1e-6}},
    {"vectors", LayerNorm{}},
    {"alexnet", Lrn{}},
    {"alexnet_paper", Lrn{.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2}},
    {"even", Lrn{.size = 4, .alpha = 1.5, .beta = 0.75, .k = 1}},
    {"map", Relu{}},
    {"vector", FullyConnected{.outputs = 5}},
    {"map", FullyConnected{.outputs = 4}},
    {"no_bias", FullyConnected{.outputs = 7, .bias = false}},
    {"vector", Softmax{}},
    {"map", Softmax{}},
    {"rows", Softmax{.axis = Axis::row}},
    {"log", Softmax{.log = true}},
    {"log_columns", Softmax{.axis = Axis::column, .log = true}},
    {"map", Pointwise{Function::sigmoid}},
    {"map", Pointwise{Function::tanh}},
    {"relu6", Pointwise{Function::clip, 0, 6}},
    {"two_sides", Pointwise{Function::clip, -0.5, 0.75}},
    {"map", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}},
    {"keras", Pointwise{Function::hard_sigmoid, 0.2, 0.5}},
    {"map", Pointwise{Function::hard_swish}},
    {"map", Pointwise{Function::silu}},
    {"channels", PRelu{}},
    {"one", PRelu{.by_channel = false}},
    {"map", Pointwise{Function::leaky_relu, 0.1}},
    {"map", Pointwise{Function::elu, 1, 1}},
    {"selu", Pointwise{Function::elu, selu_alpha, selu_scale}},
    {"map", Pointwise{Function::celu, 0.5}},
    {"map", Pointwise{Function::gelu}},
    {"map", Pointwise{Function::gelu_tanh}},
    {"map", Pointwise{Function::softplus}},
    {"map", Pointwise{Function::mish}},
    {"map", Pointwise{Function::exp}},
    {"map", Pointwise{Function::log}},
    {"map", Pointwise{Function::sqrt}},
    {"map", Pointwise{Function::abs}},
    {"cube", Pointwise{Function::pow, 3}},
    {"root", Pointwise{Function::pow, -0.75}},
    {"vector", SoftmaxCrossEntropy{}},
    {"map", SoftmaxCrossEntropy{}},
    {"clipped", SoftmaxCrossEntropy{.clip = 0.2}},
    {"vector", SigmoidCrossEntropy{}},
    {"clipped", SigmoidCrossEntropy{.clip = 0.3}},
    {"sequence", Embedding{.vocabulary = 9, .features = 5}},
    {"vector", Embedding{.vocabulary = 6, .features = 3}},
    {"two", Add{}},
    {"equal", Binary{BinaryFunction::multiply}},
    {"planes", Binary{BinaryFunction::multiply}},
    {"pixels", Binary{BinaryFunction::multiply}},
    {"rows_and_columns", Binary{BinaryFunction::add}},
    {"rows", Binary{BinaryFunction::subtract}},
    {"equal", Binary{BinaryFunction::divide}},
    {"pixels", Binary{BinaryFunction::divide}},
    {"equal", Binary{BinaryFunction::maximum}},
    {"channels", Binary{BinaryFunction::maximum}},
    {"all", Binary{BinaryFunction::minimum}},
    {"four_sides", Pad{.before = {1, 2}, .after = {0, 3}, .value = 0.25}},
    {"edge", Pad{.before = {1, 2}, .after = {0, 3}, .by = PadBy::edge}},
    {"reflect", Pad{.before = {1, 2}, .after = {0, 2}, .by = PadBy::reflect}},
    {"wrap", Pad{.before = {1, 2}, .after = {0, 3}, .by = PadBy::wrap}},
    {"channels", Pad{.before = {0, 1}, .after = 0, .value = -2, .channels_before = 1, .channels_after = 2}},
    {"nearest", Resize{.to = {7, 9}}},
    {"nearest_factor", Resize{.to = {6, 7}, .step_h = 1 / 1.5, .step_w = 1 / 1.5}},
    {"nearest_less", Resize{.to = {3, 2}}},
    {"nearest_exact", Resize{.to = {7, 3}, .by = ResizeBy::nearest_exact}},
    {"linear", Resize{.to = {8, 3}, .by = ResizeBy::linear}},
    {"linear_double", Resize{.to = {8, 10}, .by = ResizeBy::linear}},
    {"linear_factor", Resize{.to = {6, 7}, .by = ResizeBy::linear, .step_h = 1 / 1.5, .step_w = 1 / 1.5}},
    {"linear_aligned", Resize{.to = {9, 3}, .by = ResizeBy::linear_aligned}},
    {"linear_aligned_one", Resize{.to = {1, 7}, .by = ResizeBy::linear_aligned}},
    {"two_groups", channel_shuffle({2, 6, 3, 2}, 2)},
    {"three_groups", channel_shuffle({2, 6, 3, 2}, 3)},
    {"to_space", pixel_shuffle({2, 12, 3, 5}, 2)},
    {"to_depth", pixel_unshuffle({2, 2, 6, 9}, 3)},
    {"permuted", Reorder{.extents = {5, 3, 7}, .order = {2, 0, 1}, .channels = 7, .pixels = {5, 3}}},
    {"mean_channels", Reduce{ReduceBy::mean, true, false, false}},
    {"mean_rows_and_channels", Reduce{ReduceBy::mean, true, true, false}},
    {"sum_columns", Reduce{ReduceBy::sum, false, false, true}},
    {"sum_around_rows", Reduce{ReduceBy::sum, true, false, true}},
    {"max_channels", Reduce{ReduceBy::max, true, false, false}},
    {"max_image", Reduce{ReduceBy::max, true, true, true}},
    {"three", Concat{}},
    {"rows", Concat{Axis::row}},
    {"middle", Slice{.first = 2, .count = 3}},
    {"rows", Slice{.axis = Axis::row, .first = 1, .count = 2, .step = 3}},
    {"columns", Slice{.axis = Axis::column, .first = 0, .count = 4, .step = 2}},
    {"all", Recurrent{.hidden = 5}},
    {"all_reverse", Recurrent{.hidden = 3, .reverse = true}},
    {"last", Recurrent{.hidden = 17, .steps = Steps::last}},
    {"last_reverse", Recurrent{.hidden = 4, .steps = Steps::last, .reverse = true}},
    {"hard", Recurrent{.hidden = 5, .gates = Gates::hard_sigmoid}},
    {"hard_last_reverse", Recurrent{.hidden = 4, .steps = Steps::last, .gates = Gates::hard_sigmoid, .reverse = true}},
    {"all", Recurrent{.hidden = 5, .cell = Cell::gru}},
    {"last_reverse", Recurrent{.hidden = 17, .cell = Cell::gru, .steps = Steps::last, .reverse = true}},
};

/// The tensors of one case and element type. They are found by the last part of their names.
class Tensors {
 public:
  Tensors(const Golden& golden, DType dtype)
      : prefix_(golden.name + "." + std::string(to_string(dtype)) + "."),
        file_(read_safetensors(test::data("goldens/" + std::string(op_name(golden.op)) + ".safetensors"))) {}

  bool has(const std::string& name) const { return file_.contains(prefix_ + name); }
  const HostTensor& operator[](const std::string& name) const {
    if (!has(name)) FAIL("no " << prefix_ << name << " among the goldens");
    return file_.at(prefix_ + name);
  }

 private:
  std::string prefix_;
  TensorFile file_;
};

Case golden_case(const Golden& golden, const Tensors& tensors) {
  Case c{golden.name, golden.op, {}, {}, golden.mode};
  for (int i = 0; tensors.has("x" + std::to_string(i)); ++i) {
    std::vector<std::int64_t> extents = tensors["x" + std::to_string(i)].extents;
    extents.resize(4, 1);
    int* const axes[] = {&c.x.emplace_back().n, &c.x.back().c, &c.x.back().h, &c.x.back().w};
    for (std::size_t axis = 0; axis < 4; ++axis) *axes[axis] = static_cast<int>(extents[axis]);
  }
  return c;
}

Feed feed_of(const Golden& golden, const Case& c, const Tensors& tensors) {
  Feed feed;
  for (std::size_t i = 0; i < c.x.size(); ++i) feed.x.push_back(tensors["x" + std::to_string(i)].values);
  const Inferred inferred = infer(c.op, c.x);
  for (std::size_t i = 0; i < inferred.params.size(); ++i)
    feed.w.push_back(tensors[std::string(parameter_names(golden.op)[i])].values);
  for (std::size_t i = 0; i < inferred.state.size(); ++i)
    feed.state.push_back(tensors[std::string(state_names(golden.op)[i])].values);
  feed.dy = tensors["dy"].values;
  return feed;
}

/// In f64 the tolerance is 1e-10 of the tensor's largest number. In f32 it is twice the derived bound, because
/// PyTorch's result has an error, too.
void check_golden(const std::string& what, const Values& got, const Values& want, Bound bound, DType dtype) {
  if (dtype == DType::f64) return check_close(what, got, want, {Values(want.size(), largest_of(want)), 1}, 1e-10);
  bound.count = 2 * std::max(bound.count, 8.0);
  check_close(what, got, want, bound, epsilon(dtype));
}

}  // namespace

TEST_CASE("every op agrees with PyTorch") {
  for (const Golden& golden : goldens)
    for (const DType dtype : element_types()) {
      INFO(op_name(golden.op) << ' ' << golden.name << ' ' << to_string(dtype));
      const Tensors tensors(golden, dtype);
      const Case c = golden_case(golden, tensors);
      const Feed feed = feed_of(golden, c, tensors);
      const Bounds bounds = bounds_of(c, feed);
      const Spec spec = *make_spec(backend(), c, {.dtype = dtype});
      for (const std::string& algorithm : algorithms(spec, Pass::forward)) {
        INFO("forward by " << algorithm);
        const Result got = run_unit(backend(), spec, {.algorithm = {algorithm, "", ""}}, feed);
        const auto check = [&](const std::string& name, const Values& values, const Bound& bound) {
          check_golden(name, values, tensors[name].values, bound, dtype);
        };
        check("y", got.y, bounds.y);
        for (std::size_t i = 0; i < got.state.size(); ++i)
          check(std::string(state_names(c.op)[i]) + "_after", got.state[i], bounds.state[i]);
        for (std::size_t i = 0; i < got.dx.size(); ++i)
          if (spec.wants_dx[i]) check("dx" + std::to_string(i), got.dx[i], bounds.dx[i]);
        for (std::size_t i = 0; i < got.dw.size(); ++i)
          check("d" + std::string(parameter_names(c.op)[i]), got.dw[i], bounds.dw[i]);
      }
    }
}
