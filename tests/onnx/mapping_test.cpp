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
  const auto clip = [](std::vector<std::string> limits, const char* low, const char* high) {
    return read(of_nodes({node("Clip", {"x", low, high}, {"c"}), node("Identity", {"c"}, {"y"})}, {0, 4}, limits));
  };
  const auto six = tensor("six", {}, {6}), zero = tensor("zero", {}, {0}), most = tensor("most", {}, {3.4028235e38F});
  CHECK(op_of(clip({zero, six}, "zero", "six")) == Op(Clip{.low = 0, .high = 6}));
  CHECK(op_of(clip({six}, "", "six")) == Op(Clip{.low = -infinity, .high = 6}));
  CHECK(op_of(clip({six, most}, "six", "most")) == Op(Clip{.low = 6, .high = infinity}));
  CHECK(op_of(clip({zero, most}, "zero", "most")) == Op(Relu{}));
  CHECK(op_of(clip({zero, six}, "six", "zero")) == Op(Clip{.low = 0, .high = 0}));
}

TEST_CASE("a limit by Max or Min with a number is a Clip or a Relu") {
  const auto limited = [](const char* op, float number, bool first) {
    const auto limit = first ? node(op, {"k", "x"}, {"y"}) : node(op, {"x", "k"}, {"y"});
    return op_of(read(of_nodes({limit}, {0, 4}, {tensor("k", {}, {number})})));
  };
  CHECK(limited("Max", 0, true) == Op(Relu{}));
  CHECK(limited("Max", 0.1F, false) == Op(Clip{.low = 0.1, .high = infinity}));
  CHECK(limited("Min", 6, false) == Op(Clip{.low = -infinity, .high = 6}));
  CHECK_THROWS_AS(read(of_nodes({node("Max", {"x", "x"}, {"y"})}, {0, 4})), Unsupported);
  CHECK_THROWS_WITH(read(of_nodes({node("Max", {"x", "k"}, {"y"})}, {0, 4}, {tensor("k", {4}, {1, 2, 3, 4})})),
                    ContainsSubstring("limit by one number"));
}

TEST_CASE("constants of arithmetic are fixed numbers, one for all or one for each channel") {
  // x * relu6(x + 3) / 6
  const OnnxModel swish =
      read(of_nodes({node("Add", {"x", "three"}, {"a"}), node("Clip", {"a", "zero", "six"}, {"c"}),
                     node("Mul", {"x", "c"}, {"p"}), node("Div", {"p", "six"}, {"y"})},
                    {1, 4, 1, 2}, {tensor("three", {}, {3}), tensor("zero", {}, {0}), tensor("six", {}, {6})}));
  REQUIRE(swish.graph.nodes().size() == 5);
  CHECK(swish.graph.parameter_count() == 0);
  CHECK(swish.graph.node("a").op == Op(ScaleShift{.by_channel = false}));
  CHECK(swish.weights.at("a.shift").values == std::vector<double>{3});
  CHECK(swish.weights.at("y.scale").values == std::vector<double>{1.0 / 6});
  CHECK(output_of(swish)[1] == Approx(4.0 / 6));
  // 1 - x / deviation * 0.1: of each channel, and as it was written
  const OnnxModel image = read(of_nodes(
      {node("Div", {"x", "deviation"}, {"d"}), node("Mul", {"d", "tenth"}, {"m"}), node("Sub", {"one", "m"}, {"y"})},
      {1, 2, 1, 1}, {tensor("deviation", {2, 1, 1}, {3, 4}), tensor("one", {}, {1}), tensor("tenth", {}, {0.1F})}));
  REQUIRE(image.graph.nodes().size() == 2);
  CHECK(image.graph.node("d").op == Op(ScaleShift{}));
  CHECK(image.weights.at("d.scale").values == std::vector<double>{-1.0 / 3 * 0.1, -0.25 * 0.1});
  CHECK(image.weights.at("d.shift").values == std::vector<double>{1, 1});
}

TEST_CASE("what is added right after a product, one number for each of its results, is its bias and trains") {
  const auto sum = [](const std::string& operand, const char* op) {
    return read(of_nodes({node("Gemm", {"x", "w"}, {"g"}, {}, "fc"), node(op, {"g", "k"}, {"y"})}, {1, 2},
                         {tensor("w", {2, 2}, {1, 2, 3, 4}), operand}));
  };
  CHECK(sum(tensor("k", {2}, {5, 6}), "Add").weights.at("fc.bias").values == std::vector<double>{5, 6});
  for (const auto& [operand, op] :
       {std::pair(tensor("k", {}, {5}), "Add"), {tensor("k", {2}, {5, 6}), "Sub"}, {tensor("k", {2}, {5, 6}), "Mul"}}) {
    const OnnxModel fixed = sum(operand, op);
    CHECK(fixed.graph.node("fc").op == Op(FullyConnected{.outputs = 2, .bias = false}));
    CHECK(fixed.graph.node("y").state.size() == 2);
  }
}

TEST_CASE("weights that a file computes by sums over their axes are folded") {
  const std::vector<float> v = {3, 0, 4, 0, 6, 8};
  const OnnxModel normed =
      read(of_nodes({node("ReduceL2", {"v", "axes"}, {"n"}), node("Div", {"v", "n"}, {"u"}),
                     node("Mul", {"u", "g"}, {"w"}), node("Gemm", {"x", "w"}, {"y"}, {{"transB", std::int64_t{1}}})},
                    {1, 3}, {tensor("v", {2, 3}, v), integers("axes", {1}), tensor("g", {2, 1}, {10, 1})}, 18));
  CHECK(normed.weights.at("y.weight").values == std::vector<double>{6, 0, 8, 0, 0.6, 0.8});
  const auto folded = [&](const char* op, std::vector<Attribute> attributes) {
    return read(of_nodes({node(op, {"v"}, {"k"}, attributes), node("Add", {"x", "k"}, {"y"})}, {1, 2, 1, 1},
                         {tensor("v", {2, 3}, v)}))
        .weights.at("y.shift")
        .values;
  };
  CHECK(folded("ReduceSum", {}) == std::vector<double>{21});
  CHECK(folded("ReduceMean", {{"keepdims", std::int64_t{0}}}) == std::vector<double>{3.5});
}

TEST_CASE("a value times its sigmoid is a Silu, unless the sigmoid is read again") {
  const std::string sigmoid = node("Sigmoid", {"x"}, {"s"}), product = node("Mul", {"x", "s"}, {"y"}, {}, "swish");
  const OnnxModel silu = read(of_nodes({sigmoid, product}, {0, 3, 2, 2}));
  REQUIRE(silu.graph.nodes().size() == 2);
  CHECK(silu.graph.node("swish").op == Op(Silu{}));
  const OnnxModel both =
      read(of_nodes({sigmoid, node("Mul", {"s", "x"}, {"p"}), node("Add", {"p", "s"}, {"y"})}, {0, 3, 2, 2}));
  REQUIRE(both.graph.nodes().size() == 4);
  CHECK(both.graph.nodes()[2].op == Op(Multiply{}));
}

TEST_CASE("a value times its hard sigmoid of a sixth is a HardSwish") {
  const auto model = [](float alpha) {
    return of_nodes(
        {node("HardSigmoid", {"x"}, {"s"}, {{"alpha", alpha}, {"beta", 0.5F}}), node("Mul", {"s", "x"}, {"y"})},
        {0, 4});
  };
  CHECK(op_of(read(model(1.F / 6))) == Op(HardSwish{}));
  const OnnxModel other = read(model(0.2F));
  CHECK(other.graph.nodes()[1].op == Op(HardSigmoid{.alpha = 0.2, .beta = 0.5}));
  CHECK(op_of(other) == Op(Multiply{}));
}

TEST_CASE("one number for each image and channel multiplies planes, whichever operand it is") {
  for (const bool first : {true, false}) {
    const std::string product = first ? node("Mul", {"g", "x"}, {"y"}) : node("Mul", {"x", "g"}, {"y"});
    const OnnxModel model = read(of_nodes({node("GlobalAveragePool", {"x"}, {"g"}), product}, {2, 3, 2, 2}));
    CHECK(model.graph.nodes().back().inputs == std::vector<int>{0, 1});
    std::vector<double> expected;
    for (int plane = 0; plane < 6; ++plane) {
      for (int i = 0; i < 4; ++i) expected.push_back((4 * plane + i) * (4 * plane + 1.5));
    }
    CHECK(output_of(model) == expected);
  }
  const Model rows =
      of_nodes({node("ReduceMean", {"x"}, {"g"}, {{"axes", Extents{2, 3}}, {"keepdims", std::int64_t{0}}}),
                node("Mul", {"x", "g"}, {"y"})},
               {3, 3, 3, 3});
  CHECK_THROWS_AS(read(rows), Unsupported);  // aligned at the last axis: 3x3 is rows and columns there
}

TEST_CASE("a value times itself is a Multiply where no LRN follows") {
  const OnnxModel model =
      read(of_nodes({node("Mul", {"x", "x"}, {"s"}, {}, "square"), node("Relu", {"s"}, {"y"})}, {1, 4}));
  CHECK(model.graph.node("square").op == Op(Multiply{}));
  CHECK(output_of(model) == std::vector<double>{0, 1, 4, 9});
  CHECK(output_of(read(of_nodes({node("Mul", {"x", "x"}, {"y"})}, {1, 4}))) == std::vector<double>{0, 1, 4, 9});
}

TEST_CASE("channels in groups that a Transpose exchanges are a ChannelShuffle") {
  const OnnxModel model = read(of_nodes(
      {node("Reshape", {"x", "groups"}, {"g"}), node("Transpose", {"g"}, {"t"}, {{"perm", Extents{0, 2, 1, 3, 4}}}),
       node("Reshape", {"t", "back"}, {"s"}, {}, "shuffle"), node("Relu", {"s"}, {"y"})},
      {2, 6, 1, 2}, {integers("groups", {2, 2, 3, 1, 2}), integers("back", {2, 6, 1, 2})}));
  CHECK(model.graph.node("shuffle").op == Op(ChannelShuffle{.groups = 2}));
  const std::vector<double> y = output_of(model);
  CHECK(std::vector<double>(y.begin(), y.begin() + 12) == std::vector<double>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
}

TEST_CASE("a Pad that no convolution or pool takes over is an op") {
  const std::string pads = integers("pads", {0, 0, 1, 0, 0, 0, 0, 2}), nine = tensor("nine", {}, {9});
  const Pad pad{.before = {1, 0}, .after = {0, 2}, .value = 9};
  const OnnxModel last =
      read(of_nodes({node("Pad", {"x", "pads", "nine"}, {"y"}, {}, "pad")}, {1, 1, 1, 2}, {pads, nine}));
  CHECK(last.graph.node("pad").op == Op(pad));
  CHECK(output_of(last) == std::vector<double>{9, 9, 9, 9, 0, 1, 9, 9});
  const OnnxModel conv =
      read(of_nodes({node("Pad", {"x", "pads", "nine"}, {"p"}, {}, "pad"), node("Conv", {"p", "w"}, {"y"})},
                    {1, 1, 3, 3}, {pads, nine, tensor("w", {1, 1, 1, 1}, {2})}));
  CHECK(conv.graph.node("pad").op == Op(pad));
  const auto zeros = [](const Extents& its) {
    return read(of_nodes({node("Pad", {"x", "pads"}, {"p"}, {}, "pad"), node("Conv", {"p", "w"}, {"y"})}, {1, 1, 3, 3},
                         {integers("pads", its), tensor("w", {1, 1, 1, 1}, {2})}));
  };
  CHECK(zeros({0, 0, 1, 2, 0, 0, 1, 2}).graph.nodes().size() == 2);
  CHECK(zeros({0, 0, 1, 0, 0, 0, 0, 2}).graph.node("pad").op == Op(Pad{.before = {1, 0}, .after = {0, 2}}));
}

TEST_CASE("where the pads of a convolution differ at the two ends, an op pads by what one has more") {
  const OnnxModel model = read(of_nodes({node("Conv", {"x", "w"}, {"y"}, {{"pads", Extents{1, 0, 2, 3}}}, "conv")},
                                        {1, 1, 3, 3}, {tensor("w", {1, 1, 3, 3}, std::vector<float>(9, 1))}));
  REQUIRE(model.graph.nodes().size() == 3);
  CHECK(model.graph.node("conv.pad").op == Op(Pad{.before = 0, .after = {1, 3}}));
  CHECK(model.graph.node("conv").op == Op(Conv{.channels = 1, .kernel = 3, .pad = {1, 0}, .bias = false}));
  CHECK(model.weights.at("conv.weight").values == std::vector<double>(9, 1));
}

TEST_CASE("pads of a pool that the ops do not express are an op before it") {
  const auto pool = [](const char* op, const Extents& kernel, const Extents& pads, std::int64_t counted) {
    std::vector<Attribute> attributes = {{"kernel_shape", kernel}, {"pads", pads}};
    if (counted >= 0) attributes.emplace_back("count_include_pad", counted);
    return of_nodes({node(op, {"x"}, {"y"}, attributes)}, {1, 1, 1, 3});
  };
  CHECK(output_of(read(pool("MaxPool", {1, 2}, {0, 0, 0, 1}, -1))) == std::vector<double>{1, 2, 2});
  CHECK(output_of(read(pool("MaxPool", {1, 2}, {0, 1, 0, 0}, -1))) == std::vector<double>{0, 1, 2});
  CHECK(output_of(read(pool("AveragePool", {1, 2}, {0, 0, 0, 1}, 1))) == std::vector<double>{0.5, 1.5, 1});
  CHECK(output_of(read(pool("AveragePool", {1, 2}, {0, 2, 0, 0}, 1))) == std::vector<double>{0, 0, 0.5, 1.5});
  CHECK(output_of(read(pool("AveragePool", {1, 5}, {0, 0, 0, 2}, 0))) == std::vector<double>{1});  // one window
}

TEST_CASE("windows that are rounded up are those of the format, with pads and without") {
  const auto pool = [](const char* op, const Extents& x, std::vector<Attribute> attributes) {
    attributes.emplace_back("ceil_mode", std::int64_t{1});
    return output_of(read(of_nodes({node(op, {"x"}, {"y"}, attributes)}, x)));
  };
  CHECK(pool("MaxPool", {1, 1, 1, 1}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{2, 2}}}) ==
        std::vector<double>{0});
  CHECK(pool("AveragePool", {1, 1, 1, 2},
             {{"kernel_shape", Extents{1, 2}},
              {"strides", Extents{1, 2}},
              {"pads", Extents{0, 1, 0, 0}},
              {"count_include_pad", std::int64_t{1}}}) == std::vector<double>{0, 1});
  // A window may start in the result of a Pad, but not in a pool's own pad.
  const std::string pads = integers("pads", {0, 0, 0, 0, 0, 0, 0, 1}), zero = tensor("zero", {}, {0});
  const std::vector<Attribute> rounded_up = {
      {"kernel_shape", Extents{1, 2}}, {"strides", Extents{1, 2}}, {"ceil_mode", std::int64_t{1}}};
  for (const char* op : {"AveragePool", "MaxPool"}) {
    CAPTURE(op);
    const OnnxModel model = read(of_nodes(
        {node("Pad", {"x", "pads", "zero"}, {"p"}), node(op, {"p"}, {"y"}, rounded_up)}, {1, 1, 1, 2}, {pads, zero}));
    CHECK(output_of(model) == std::vector<double>{op[0] == 'A' ? 0.5 : 1.0, 0});
  }
}

TEST_CASE("what no op of the library expresses is refused by its operator and what is not supported") {
  const auto refused = [](const std::string& reader, const Extents& x, const std::string& why,
                          std::vector<std::string> weights = {}) {
    const Model model = of_nodes({reader}, x, std::move(weights));
    CHECK_THROWS_AS(read(model), Unsupported);
    CHECK_THROWS_WITH(read(model), ContainsSubstring(why) && ContainsSubstring("docs/onnx.md"));
  };
  const std::string w = tensor("w", {1, 1, 1, 1}, {1}), volumes = tensor("w", {1, 1, 1, 1, 1}, {1});
  const Extents volume = {1, 1, 2, 2, 2};
  const Attribute pair("kernel_shape", Extents{1, 2}), triple("kernel_shape", Extents{1, 1, 1});
  const std::string spatial = "3 axes of space are not supported";
  refused(node("ConvTranspose", {"x", "w"}, {"y"}), {1, 1, 2, 2}, "'y' (ConvTranspose, opset 17): this operator", {w});
  refused(node("Conv", {"x", "w"}, {"y"}), volume, "(Conv, opset 17): " + spatial, {volumes});
  refused(node("AveragePool", {"x"}, {"y"}, {triple}), volume, "(AveragePool, opset 17): " + spatial);
  refused(node("MaxPool", {"x"}, {"y"}, {pair, {"dilations", Extents{1, 2}}}), {1, 1, 1, 4},
          "(MaxPool, opset 17): dilations of a pool");
  refused(node("MaxPool", {"x"}, {"m", "y"}, {pair}), {1, 1, 1, 4}, "(MaxPool, opset 17): its output 'y'");
  refused(node("AveragePool", {"x"}, {"y"}, {pair, {"pads", Extents{0, 0, 0, 1}}}), {1, 1, 1, 3},
          "(AveragePool, opset 17): pads that do not count");
  refused(node("MatMul", {"x", "w"}, {"y"}), {2, 1, 2}, "(MatMul, opset 17): a product of 2x1x2 and 2x2x1",
          {tensor("w", {2, 2, 1}, {1, 2, 3, 4})});
  refused(node("Gather", {"table", "x"}, {"y"}, {{"axis", std::int64_t{1}}}), {2}, "(Gather, opset 17): axis 1",
          {tensor("table", {1, 2}, {0, 1})});
}

TEST_CASE("a mean over all pixels is taken in whatever order their axes are") {
  const OnnxModel row = read(
      of_nodes({node("MaxPool", {"x"}, {"m"}, {{"kernel_shape", Extents{1}}}), node("Unsqueeze", {"m", "at"}, {"u"}),
                node("ReduceMean", {"u"}, {"r"}, {{"axes", Extents{-1, -2}}}), node("Squeeze", {"r", "at"}, {"y"})},
               {1, 2, 3}, {integers("at", {2})}));
  CHECK(row.output.extents == Extents{1, 2, 1});
  CHECK(output_of(row) == std::vector<double>{1, 4});
  const OnnxModel largest = read(of_nodes({node("ReduceMax", {"x", "axes"}, {"y"}, {{"keepdims", std::int64_t{0}}})},
                                          {2, 1, 2, 2}, {integers("axes", {-2, -1})}, 18));
  CHECK(largest.output.extents == Extents{2, 1});
  CHECK(output_of(largest) == std::vector<double>{3, 7});
  const OnnxModel volume = read(of_nodes({node("GlobalMaxPool", {"x"}, {"y"})}, {1, 2, 2, 1, 2}));
  CHECK(volume.output.extents == Extents{1, 2, 1, 1, 1});
  CHECK(output_of(volume) == std::vector<double>{3, 7});
}

TEST_CASE("a Pad by cells of the image is an op") {
  const std::string pads = integers("pads", {0, 0, 0, 1, 0, 0, 0, 2});
  const auto padded = [&](const char* mode) {
    return output_of(read(of_nodes({node("Pad", {"x", "pads"}, {"y"}, {{"mode", mode}})}, {1, 1, 1, 3}, {pads})));
  };
  CHECK(padded("edge") == std::vector<double>{0, 0, 1, 2, 2, 2});
  CHECK(padded("reflect") == std::vector<double>{1, 0, 1, 2, 1, 0});
  CHECK(padded("wrap") == std::vector<double>{2, 0, 1, 2, 0, 1});
}

TEST_CASE("a constant for other axes than the second makes these the channels, where the input lets it") {
  const auto sums = [](const char* op, const Extents& x, const Extents& its, std::vector<float> numbers) {
    return output_of(read(of_nodes({node(op, {"x", "k"}, {"y"})}, x, {tensor("k", its, numbers)})));
  };
  CHECK(sums("Add", {2, 2, 3}, {3}, {10, 20, 30}) ==
        std::vector<double>{10, 21, 32, 13, 24, 35, 16, 27, 38, 19, 30, 41});
  CHECK(sums("Mul", {2, 3}, {2, 1}, {2, 3}) == std::vector<double>{0, 2, 4, 9, 12, 15});
  CHECK(sums("Sub", {2, 2}, {2, 2}, {1, 2, 3, 4}) == std::vector<double>{-1, -1, -1, -1});
  CHECK(sums("Add", {2, 2, 2}, {2, 1, 2}, {1, 2, 3, 4}) == std::vector<double>{1, 3, 3, 5, 7, 9, 9, 11});
}

TEST_CASE("a Gemm adds what is computed") {
  const OnnxModel model = read(of_nodes({node("Relu", {"x"}, {"r"}), node("Gemm", {"x", "w", "r"}, {"y"})}, {1, 2},
                                        {tensor("w", {2, 2}, {1, 2, 3, 4})}));
  CHECK(output_of(model) == std::vector<double>{3, 5});
  CHECK_THROWS_AS(read(of_nodes({node("Relu", {"x"}, {"r"}), node("Gemm", {"x", "w", "r"}, {"y"}, {{"beta", 2.0F}})},
                                {1, 2}, {tensor("w", {2, 2}, {1, 2, 3, 4})})),
                  Unsupported);
}

TEST_CASE("the mask of a Dropout that drops nothing is a constant") {
  Model model = of_nodes({node("Dropout", {"x"}, {"d", "mask"}),
                          node("Cast", {"mask"}, {"m"}, {{"to", std::int64_t{1}}}), node("Mul", {"d", "m"}, {"y"})},
                         {1, 3});
  CHECK(output_of(read(model)) == std::vector<double>{0, 1, 2});
  model.outputs = {value("mask", {})};
  CHECK_THROWS_AS(read(model), Unsupported);  // there is nothing to compute
}
