// Which op a node of the file becomes where several nodes, or the shape of an operand, decide.

#include <limits>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("limits are a Clip, a Relu or nothing, and of two that cross the upper one holds") {
  const auto clip = [](const std::string& limits) {
    return op_of(
        read("x[n,4] zero[] = 0; six[] = 6; most[] = 3.4028235e38; c = Clip(x, " + limits + ") y = Identity(c)"));
  };
  CHECK(clip("zero, six") == Op(Clip{.low = 0, .high = 6}));
  CHECK(clip(", six") == Op(Clip{.low = -infinity, .high = 6}));
  CHECK(clip("six, most") == Op(Clip{.low = 6, .high = infinity}));
  CHECK(clip("zero, most") == Op(Relu{}));
  CHECK(clip("six, zero") == Op(Clip{.low = 0, .high = 0}));
}

TEST_CASE("a limit by Max or Min with a number is a Clip or a Relu") {
  const auto limited = [](const std::string& limit, const std::string& k) {
    return op_of(read("x[n,4] k" + k + " y = " + limit));
  };
  CHECK(limited("Max(k, x)", "[] = 0") == Op(Relu{}));
  CHECK(limited("Max(x, k)", "[] = 0.1") == Op(Clip{.low = 0.1, .high = infinity}));
  CHECK(limited("Min(x, k)", "[] = 6") == Op(Clip{.low = -infinity, .high = 6}));
  CHECK_THROWS_AS(limited("Max(x, x)", "[] = 0"), Unsupported);
  CHECK_THROWS_WITH(limited("Max(x, k)", "[4] = 1.."), ContainsSubstring("limit by one number"));
}

TEST_CASE("constants of arithmetic are fixed numbers, one for all or one for each channel") {
  // x * relu6(x + 3) / 6
  const OnnxModel swish = read(R"(x[1,4,1,2] three[] = 3; zero[] = 0; six[] = 6
    a = Add(x, three) c = Clip(a, zero, six) p = Mul(x, c) y = Div(p, six))");
  REQUIRE(swish.graph.nodes().size() == 5);
  CHECK(swish.graph.parameter_count() == 0);
  CHECK(swish.graph.node("a").op == Op(ScaleShift{.by_channel = false}));
  CHECK(swish.weights.at("a.shift").values == Values{3});
  CHECK(swish.weights.at("y.scale").values == Values{1.0 / 6});
  CHECK(output_of(swish)[1] == Approx(4.0 / 6));
  // 1 - x / deviation * 0.1: of each channel, and as it was written
  const OnnxModel image = read(R"(x[1,2,1,1] deviation[2,1,1] = 3, 4; one[] = 1; tenth[] = 0.1
    d = Div(x, deviation) m = Mul(d, tenth) y = Sub(one, m))");
  REQUIRE(image.graph.nodes().size() == 2);
  CHECK(image.graph.node("d").op == Op(ScaleShift{}));
  CHECK(image.weights.at("d.scale").values == Values{-1.0 / 3 * 0.1, -0.25 * 0.1});
  CHECK(image.weights.at("d.shift").values == Values{1, 1});
}

TEST_CASE("what is added right after a product, one number for each of its results, is its bias and trains") {
  const auto sum = [](const std::string& op, const std::string& operand) {
    return read("x[1,2] w[2,2] = 1..; k" + operand + " g = Gemm(x, w) \"fc\" y = " + op + "(g, k)");
  };
  CHECK(sum("Add", "[2] = 5, 6").weights.at("fc.bias").values == Values{5, 6});
  for (const auto& [op, operand] : {std::pair("Add", "[] = 5"), {"Sub", "[2] = 5, 6"}, {"Mul", "[2] = 5, 6"}}) {
    const OnnxModel fixed = sum(op, operand);
    CHECK(fixed.graph.node("fc").op == Op(FullyConnected{.outputs = 2, .bias = false}));
    CHECK(fixed.graph.node("y").state.size() == 2);
  }
}

TEST_CASE("weights that a file computes by sums over their axes are folded") {
  const OnnxModel normed = read(R"(opset 18; x[1,3] v[2,3] = 3, 0, 4, 0, 6, 8; axes = {1}; g[2,1] = 10, 1
    n = ReduceL2(v, axes) u = Div(v, n) w = Mul(u, g) y = Gemm<transB=1>(x, w))");
  CHECK(normed.weights.at("y.weight").values == Values{6, 0, 8, 0, 0.6, 0.8});
  const auto folded = [&](const std::string& op) {
    return read("x[1,2,1,1] v[2,3] = 3, 0, 4, 0, 6, 8; k = " + op + "(v) y = Add(x, k)").weights.at("y.shift").values;
  };
  CHECK(folded("ReduceSum") == Values{21});
  CHECK(folded("ReduceMean<keepdims=0>") == Values{3.5});
}

TEST_CASE("a value times its sigmoid is a Silu, unless the sigmoid is read again") {
  const OnnxModel silu = read("x[n,3,2,2] s = Sigmoid(x) y = Mul(x, s) \"swish\"");
  REQUIRE(silu.graph.nodes().size() == 2);
  CHECK(silu.graph.node("swish").op == Op(Silu{}));
  const OnnxModel both = read("x[n,3,2,2] s = Sigmoid(x) p = Mul(s, x) y = Add(p, s)");
  REQUIRE(both.graph.nodes().size() == 4);
  CHECK(both.graph.nodes()[2].op == Op(Multiply{}));
}

TEST_CASE("a value times its hard sigmoid of a sixth is a HardSwish") {
  const auto model = [](const std::string& alpha) {
    return read("x[n,4] s = HardSigmoid<alpha=" + alpha + ", beta=0.5>(x) y = Mul(s, x)");
  };
  CHECK(op_of(model("0.16666667")) == Op(HardSwish{}));
  CHECK(model("0.2").graph.nodes()[1].op == Op(HardSigmoid{.alpha = 0.2, .beta = 0.5}));
  CHECK(op_of(model("0.2")) == Op(Multiply{}));
}

TEST_CASE("one number for each image and channel multiplies planes, whichever operand it is") {
  for (const std::string product : {"Mul(g, x)", "Mul(x, g)"}) {
    const OnnxModel model = read("x[2,3,2,2] g = GlobalAveragePool(x) y = " + product);
    CHECK(model.graph.nodes().back().inputs == std::vector<int>{0, 1});
    Values expected;
    for (int plane = 0; plane < 6; ++plane) {
      for (int i = 0; i < 4; ++i) expected.push_back((4 * plane + i) * (4 * plane + 1.5));
    }
    CHECK(output_of(model) == expected);
  }
  // aligned at the last axis: 3x3 is rows and columns there
  CHECK_THROWS_AS(read("x[3,3,3,3] g = ReduceMean<axes=[2,3], keepdims=0>(x) y = Mul(x, g)"), Unsupported);
}

TEST_CASE("a value times itself is a Multiply where no LRN follows") {
  const OnnxModel model = read("x[1,4] s = Mul(x, x) \"square\" y = Relu(s)");
  CHECK(model.graph.node("square").op == Op(Multiply{}));
  CHECK(output_of(model) == Values{0, 1, 4, 9});
  CHECK(output_of(read("x[1,4] y = Mul(x, x)")) == Values{0, 1, 4, 9});
}

TEST_CASE("channels in groups that a Transpose exchanges are a ChannelShuffle") {
  const OnnxModel model = read(R"(x[2,6,1,2] groups = {2, 2, 3, 1, 2}; back = {2, 6, 1, 2}
    g = Reshape(x, groups) t = Transpose<perm=[0,2,1,3,4]>(g) s = Reshape(t, back) "shuffle" y = Relu(s))");
  CHECK(model.graph.node("shuffle").op == Op(ChannelShuffle{.groups = 2}));
  const Values y = output_of(model);
  CHECK(Values(y.begin(), y.begin() + 12) == Values{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
}

TEST_CASE("a Pad that no convolution or pool takes over is an op") {
  const std::string nines = " pads = {0, 0, 1, 0, 0, 0, 0, 2}; nine[] = 9; p = Pad(x, pads, nine) \"pad\" ";
  const Pad pad{.before = {1, 0}, .after = {0, 2}, .value = 9};
  const OnnxModel last = read("x[1,1,1,2]" + nines);
  CHECK(last.graph.node("pad").op == Op(pad));
  CHECK(output_of(last) == Values{9, 9, 9, 9, 0, 1, 9, 9});
  CHECK(read("x[1,1,3,3] w[1,1,1,1] = 2;" + nines + "y = Conv(p, w)").graph.node("pad").op == Op(pad));
  const auto zeros = [](const std::string& pads) {
    return read("x[1,1,3,3] w[1,1,1,1] = 2; pads = {" + pads + "} p = Pad(x, pads) \"pad\" y = Conv(p, w)");
  };
  CHECK(zeros("0, 0, 1, 2, 0, 0, 1, 2").graph.nodes().size() == 2);
  CHECK(zeros("0, 0, 1, 0, 0, 0, 0, 2").graph.node("pad").op == Op(Pad{.before = {1, 0}, .after = {0, 2}}));
}

TEST_CASE("where the pads of a convolution differ at the two ends, an op pads by what one has more") {
  const OnnxModel model = read("x[1,1,3,3] w[1,1,3,3] = all 1; y = Conv<pads=[1,0,2,3]>(x, w) \"conv\"");
  REQUIRE(model.graph.nodes().size() == 3);
  CHECK(model.graph.node("conv.pad").op == Op(Pad{.before = 0, .after = {1, 3}}));
  CHECK(model.graph.node("conv").op == Op(Conv{.channels = 1, .kernel = 3, .pad = {1, 0}, .bias = false}));
  CHECK(model.weights.at("conv.weight").values == Values(9, 1));
}

TEST_CASE("pads of a pool that the ops do not express are an op before it") {
  const auto pool = [](const std::string& its) { return output_of(read("x[1,1,1,3] y = " + its + "(x)")); };
  CHECK(pool("MaxPool<kernel_shape=[1,2], pads=[0,0,0,1]>") == Values{1, 2, 2});
  CHECK(pool("MaxPool<kernel_shape=[1,2], pads=[0,1,0,0]>") == Values{0, 1, 2});
  CHECK(pool("AveragePool<kernel_shape=[1,2], pads=[0,0,0,1], count_include_pad=1>") == Values{0.5, 1.5, 1});
  CHECK(pool("AveragePool<kernel_shape=[1,2], pads=[0,2,0,0], count_include_pad=1>") == Values{0, 0, 0.5, 1.5});
  CHECK(pool("AveragePool<kernel_shape=[1,5], pads=[0,0,0,2], count_include_pad=0>") == Values{1});  // one window
}

TEST_CASE("windows that are rounded up are those of the format, with pads and without") {
  CHECK(output_of(read("x[1,1,1,1] y = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)")) == Values{0});
  const std::string of_two = "<kernel_shape=[1,2], strides=[1,2], ceil_mode=1";
  CHECK(output_of(read("x[1,1,1,2] y = AveragePool" + of_two + ", pads=[0,1,0,0], count_include_pad=1>(x)")) ==
        Values{0, 1});
  // A window may start in the result of a Pad, but not in a pool's own pad.
  for (const std::string op : {"AveragePool", "MaxPool"}) {
    CAPTURE(op);
    const OnnxModel model = read(
        "x[1,1,1,2] pads = {0, 0, 0, 0, 0, 0, 0, 1}; zero[] = 0; p = Pad(x, pads, zero) y = " + op + of_two + ">(p)");
    CHECK(output_of(model) == Values{op[0] == 'A' ? 0.5 : 1.0, 0});
  }
}

TEST_CASE("what no op of the library expresses is refused by its operator and what is not supported") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_AS(read(text), Unsupported);
    CHECK_THROWS_WITH(read(text), ContainsSubstring(why) && ContainsSubstring("docs/onnx.md"));
  };
  const std::string volume = "x[1,1,2,2,2] w[1,1,1,1,1] = 1;", row = "x[1,1,1,4]";
  const std::string spatial = "3 axes of space are not supported";
  refused("x[1,1,2,2] w[1,1,1,1] = 1; y = ConvTranspose(x, w)", "'y' (ConvTranspose, opset 17): this operator");
  refused(volume + "y = Conv(x, w)", "(Conv, opset 17): " + spatial);
  refused(volume + "y = AveragePool<kernel_shape=[1,1,1]>(x)", "(AveragePool, opset 17): " + spatial);
  refused(row + "y = MaxPool<kernel_shape=[1,2], dilations=[1,2]>(x)", "(MaxPool, opset 17): dilations of a pool");
  refused(row + "m, y = MaxPool<kernel_shape=[1,2]>(x) return y", "(MaxPool, opset 17): its output 'y'");
  refused("x[1,1,1,3] y = AveragePool<kernel_shape=[1,2], pads=[0,0,0,1]>(x)",
          "(AveragePool, opset 17): pads that do not count");
  refused("x[2,1,2] w[2,2,1] = 1..; y = MatMul(x, w)", "(MatMul, opset 17): a product of 2x1x2 and 2x2x1");
  refused("x[2] table[1,2] = 0, 1; y = Gather<axis=1>(table, x)", "(Gather, opset 17): axis 1");
}

TEST_CASE("a mean over all pixels is taken in whatever order their axes are") {
  const OnnxModel row = read(R"(x[1,2,3] at = {2}
    m = MaxPool<kernel_shape=[1]>(x) u = Unsqueeze(m, at) r = ReduceMean<axes=[-1,-2]>(u) y = Squeeze(r, at))");
  CHECK(row.output.extents == Extents{1, 2, 1});
  CHECK(output_of(row) == Values{1, 4});
  const OnnxModel largest = read("opset 18; x[2,1,2,2] axes = {-2, -1}; y = ReduceMax<keepdims=0>(x, axes)");
  CHECK(largest.output.extents == Extents{2, 1});
  CHECK(output_of(largest) == Values{3, 7});
  CHECK(output_of(read("opset 18; x[1,1,2,1] r = Relu(x) y = ReduceMean<noop_with_empty_axes=1>(r)")) == Values{0, 1});
  const OnnxModel volume = read("x[1,2,2,1,2] y = GlobalMaxPool(x)");
  CHECK(volume.output.extents == Extents{1, 2, 1, 1, 1});
  CHECK(output_of(volume) == Values{3, 7});
}

TEST_CASE("a Pad by cells of the image is an op") {
  const auto padded = [&](const std::string& mode) {
    return output_of(read("x[1,1,1,3] pads = {0, 0, 0, 1, 0, 0, 0, 2} y = Pad<mode=" + mode + ">(x, pads)"));
  };
  CHECK(padded("edge") == Values{0, 0, 1, 2, 2, 2});
  CHECK(padded("reflect") == Values{1, 0, 1, 2, 1, 0});
  CHECK(padded("wrap") == Values{2, 0, 1, 2, 0, 1});
}

TEST_CASE("a constant for other axes than the second makes these the channels, where the input lets it") {
  const auto sums = [](const std::string& op, const std::string& x, const std::string& k) {
    return output_of(read("x" + x + " k" + k + " y = " + op + "(x, k)"));
  };
  CHECK(sums("Add", "[2,2,3]", "[3] = 10, 20, 30") == Values{10, 21, 32, 13, 24, 35, 16, 27, 38, 19, 30, 41});
  CHECK(sums("Mul", "[2,3]", "[2,1] = 2, 3") == Values{0, 2, 4, 9, 12, 15});
  CHECK(sums("Sub", "[2,2]", "[2,2] = 1..") == Values{-1, -1, -1, -1});
  CHECK(sums("Add", "[2,2,2]", "[2,1,2] = 1..") == Values{1, 3, 3, 5, 7, 9, 9, 11});
}

TEST_CASE("a Gemm adds what is computed") {
  CHECK(output_of(read("x[1,2] w[2,2] = 1..; r = Relu(x) y = Gemm(x, w, r)")) == Values{3, 5});
  CHECK_THROWS_AS(read("x[1,2] w[2,2] = 1..; r = Relu(x) y = Gemm<beta=2.0>(x, w, r)"), Unsupported);
}

TEST_CASE("the mask of a Dropout that drops nothing is a constant") {
  const std::string dropped = "x[1,3] d, mask = Dropout(x) m = Cast<to=1>(mask) y = Mul(d, m)";
  CHECK(output_of(read(dropped)) == Values{0, 1, 2});
  CHECK_THROWS_AS(read(dropped + " return mask"), Unsupported);  // there is nothing to compute
}
