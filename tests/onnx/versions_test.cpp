// What an operator means by its opset and its domain, after what stands before it.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("before opset 7 the axis of an addition says where its operand begins") {
  const auto sum = [](const std::string& nodes) {
    return output_of(read(R"(opset 6; x[1,2,1,2] k[2] = 10, 20; w[2,2,1,1] = 1, 0, 0, 1; five[1,1] = 5
      zeros[2,1] = all 0; six[1,2,3] = 1..;)" +
                          nodes));
  };
  const Values by_channel = {10, 11, 22, 23};
  CHECK(sum("y = Add<broadcast=1, axis=1>(x, k)") == by_channel);
  CHECK(sum("y = Add<broadcast=1>(x, k)") == Values{10, 21, 12, 23});
  CHECK(sum("c = Conv(x, w) y = Add<broadcast=1, axis=1>(c, k)") == by_channel);
  CHECK(sum("s = Add<broadcast=1, axis=0>(zeros, k) y = Add<broadcast=1, axis=1>(x, s)") == by_channel);
  CHECK(sum("y = Add<broadcast=1, axis=3>(x, five)") == Values{5, 6, 7, 8});
  CHECK_THROWS_WITH(sum("y = Add<broadcast=1, axis=2>(x, six)"), ContainsSubstring("at axis 2 of 4"));
}

TEST_CASE("an operator of another domain is not taken for ONNX's of the same name") {
  const std::string conv = "x[1,1,2,2] w[1,1,1,1] = 1; k[1,1,1] = 2; c = Conv(x, w) y = ";
  CHECK(read(conv + "ai.onnx/Add(c, k)").graph.nodes().size() == 2);
  CHECK_THROWS_WITH(read(conv + "mine/Add(c, k)"), ContainsSubstring("'mine'"));
  CHECK_THROWS_WITH(read("x[1,1,2,2] s = Sigmoid(x) y = mine/Mul(x, s)"), ContainsSubstring("'mine'"));
}

TEST_CASE("a batch norm normalises by the batch as its opset says it, and is refused then") {
  const auto norm = [](const std::string& outputs, const std::string& attribute, const std::string& opset) {
    return "x[2,1,2,2] one[1] = 1; " + outputs + " = BatchNormalization<" + attribute +
           ">(x, one, one, one, one) opset " + opset;
  };
  const std::string none = "epsilon=0.1";
  for (const std::string& model :
       {norm("y", "is_test=1", "6"), norm("y", none, "9"), norm("y, ", none, "9"), norm("y, m, v", none, "14")}) {
    CHECK(read(model).graph.nodes().size() == 2);
  }
  for (const std::string& model :
       {norm("y", none, "6"), norm("y, m, v, sm, sv", none, "9"), norm("y, m, v", "training_mode=1", "15")}) {
    CHECK_THROWS_WITH(read(model), ContainsSubstring("by the batch"));
  }
}

TEST_CASE("the gates of an LSTM are those that its activations name") {
  const auto lstm = [](const std::string& attributes, const std::string& directions = "1") {
    const std::string weights = "[" + directions + ",4,1] = all 1 ";
    return read("x[2,1,1] w" + weights + "r" + weights + "y = LSTM<hidden_size=1, " + attributes + ">(x, w, r)");
  };
  const auto gates = [](const OnnxModel& model, std::size_t at = 1) {
    return std::get<Lstm>(model.graph.nodes()[at].op).gates;
  };
  const std::string usual = "activations=[Sigmoid, Tanh, Tanh]", hard = "activations=[HardSigmoid, Tanh, Tanh]";
  CHECK(gates(lstm("layout=0")) == Gates::logistic);
  CHECK(gates(lstm(usual + ", activation_alpha=[0.3]")) == Gates::logistic);
  CHECK(gates(lstm(hard)) == Gates::hard_sigmoid);
  CHECK(gates(lstm(hard + ", activation_alpha=[0.2]")) == Gates::hard_sigmoid);
  const OnnxModel both =
      lstm("direction=bidirectional, activations=[HardSigmoid, Tanh, Tanh, Sigmoid, Tanh, Tanh]", "2");
  CHECK(gates(both, 1) == Gates::hard_sigmoid);
  CHECK(gates(both, 2) == Gates::logistic);
  CHECK_THROWS_WITH(lstm(hard + ", activation_alpha=[0.3]"), ContainsSubstring("hard sigmoid is not"));
  CHECK_THROWS_WITH(lstm("activations=[Sigmoid, Tanh, Relu]"), ContainsSubstring("Relu"));
  CHECK_THROWS_AS(lstm("activations=[Tanh, Tanh, Tanh]"), Unsupported);
  CHECK_THROWS_AS(lstm("activations=[Sigmoid, Tanh]"), FileError);
  CHECK_THROWS_AS(lstm("direction=sideways"), FileError);
}

TEST_CASE("a model that was exported for training is read as one where the options say so") {
  const std::string given = "x[2,1,1,2] one[1] = 1; zero[1] = 0; quarter[] = 0.25; yes = {1}; nothing[] = 0;";
  const std::string norm = "n, mean, var = BatchNormalization<training_mode=1>(x, one, zero, zero, one)";
  const std::string drop = "y, mask = Dropout(n, quarter, yes)", model = given + norm + drop;
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'n'") && ContainsSubstring("OnnxOptions::training"));
  CHECK_THROWS_WITH(read(given + "n = Relu(x) " + drop),
                    ContainsSubstring("'y'") && ContainsSubstring("OnnxOptions::training"));
  const OnnxOptions options{.training = true};
  const OnnxModel trained = read(model, options);
  CHECK(trained.graph.node("n").op == Op(BatchNorm{}));
  CHECK(trained.graph.node("y").op == Op(Dropout{.rate = 0.25}));
  CHECK_THROWS_WITH(read(model + " return mask", options), ContainsSubstring("mask"));
  CHECK_THROWS_WITH(read(model + " return mean", options), ContainsSubstring("'mean' is used"));
  // drops nothing, in training too
  CHECK(read(given + norm + "y, mask = Dropout(n, nothing, yes)", options).graph.node("y").op ==
        Op(Dropout{.rate = 0}));
}

TEST_CASE("what regroups axes after a Pad finds the extents that it makes") {
  const auto output = [&](const std::string& after) {
    const OnnxModel model = read("x[1,1,1,2] pads = {0, 0, 1, 0, 0, 0, 0, 1} p = Pad(x, pads) y = " + after);
    CHECK(output_of(model) == Values{0, 0, 0, 0, 1, 0});
    return model.output.extents;
  };
  CHECK(output("Reshape(p, to) to = {3, 2}") == Extents{3, 2});
  CHECK(output("Reshape(p, to) to = {0, -1}") == Extents{1, 6});
  CHECK(output("Flatten(p)") == Extents{1, 6});
  CHECK(output("Squeeze(p, to) to = {0, 1}") == Extents{2, 3});
  CHECK(output("Unsqueeze(p, to) to = {0}") == Extents{1, 1, 1, 2, 3});
}

TEST_CASE("a product of a value with itself goes on as any other where no LRN follows") {
  const auto after = [](const std::string& reader) {
    return output_of(read("x[1,1,2,2] s = Mul(x, x) y = " + reader));
  };
  CHECK(after("Mul(s, k) k[] = 2") == Values{0, 2, 8, 18});
  CHECK(after("Add(k, s) k[1] = 2") == Values{2, 3, 6, 11});
  CHECK(after("AveragePool<kernel_shape=[2,1]>(s)") == Values{2, 5});
  CHECK(after("Pad(s, k) k = {0, 0, 0, 1, 0, 0, 0, 0}") == Values{0, 0, 1, 0, 4, 9});
}

TEST_CASE("shapes are computed as the format has it: whole numbers divide to whole ones, a range may be empty") {
  const auto reshaped = [](const std::string& nodes) {
    return read(R"(x[2,3] one = {1}; rest = {-1}; seven = {7}; two = {2}; zero = {0}; minus = {-1}; many = {1, 2, 3}
      huge = {4611686018427387904};)" +
                nodes + "to = Concat<axis=0>(some, rest) y = Reshape(x, to)")
        .output.extents;
  };
  CHECK(reshaped("some = Div(seven, two) ") == Extents{3, 2});
  CHECK(reshaped(
            "a = ConstantOfShape<value={t = {7}}>(one) b = ConstantOfShape<value={t = {2}}>(one) some = Div(a, b) ") ==
        Extents{3, 2});
  CHECK(reshaped("some = Range(seven, two, one) ") == Extents{6});
  CHECK(reshaped("none = Range(seven, two, one) some = Slice(none, two, one, zero, minus) ") == Extents{6});  // nothing
  CHECK(reshaped("some = Slice(many, one, two, zero, huge) ") == Extents{2, 3});
}

TEST_CASE("a node of a branch that nothing reads is not read") {
  const OnnxModel model = read(R"(x[2,1,1] yes = {1}; w[1,4,1] = 1..;
    c = If<then_branch={ = Relu(x) h = LSTM(x, w, w) a = Tanh(x)}>(yes) y = Relu(c))");
  CHECK(model.graph.nodes().size() == 3);
}

TEST_CASE("one channel is joined with others, and multiplied by a matrix, as several are") {
  const auto joined = [&](const std::string& sizes) {
    const OnnxModel model =
        read("x[2,3,1,1] sizes = {" + sizes + "} a, b = Split<axis=1>(x, sizes) y = Concat<axis=1>(b, a)");
    CHECK(model.output.extents == Extents{2, 3, 1, 1});
    return output_of(model);
  };
  CHECK(joined("2, 1") == Values{2, 0, 1, 5, 3, 4});
  CHECK(joined("1, 2") == Values{1, 2, 0, 4, 5, 3});
  const OnnxModel rows = read("x[1,2,1] w[1,3] = 1, 10, 100; y = MatMul(x, w)");
  CHECK(rows.output.extents == Extents{1, 2, 3});
  CHECK(output_of(rows) == Values{0, 0, 0, 1, 10, 100});
}
