// What an operator means by its opset and its domain, after what stands before it; names as they are written.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Model of_opset(std::int64_t opset, Model model) {
  model.opset = opset;
  return model;
}

std::string in_domain(std::string node, std::string_view domain) {
  protozero::pbf_writer(node).add_string(7, domain.data(), domain.size());
  return node;
}

}  // namespace

TEST_CASE("before opset 7 the axis of an addition says where its operand begins") {
  const auto sum = [](std::vector<std::string> nodes) {
    return output_of(read(of_opset(
        6, of_nodes(std::move(nodes), {1, 2, 1, 2},
                    {tensor("k", {2}, {10, 20}), tensor("w", {2, 2, 1, 1}, {1, 0, 0, 1}), tensor("five", {1, 1}, {5}),
                     tensor("zeros", {2, 1}, {0, 0}), tensor("six", {1, 2, 3}, {1, 2, 3, 4, 5, 6})}))));
  };
  const auto at = [](std::int64_t axis) {
    return std::vector<Attribute>{{"broadcast", std::int64_t{1}}, {"axis", axis}};
  };
  const std::vector<double> by_channel = {10, 11, 22, 23};
  CHECK(sum({node("Add", {"x", "k"}, {"y"}, at(1))}) == by_channel);
  CHECK(sum({node("Add", {"x", "k"}, {"y"}, {{"broadcast", std::int64_t{1}}})}) == std::vector<double>{10, 21, 12, 23});
  CHECK(sum({node("Conv", {"x", "w"}, {"c"}), node("Add", {"c", "k"}, {"y"}, at(1))}) == by_channel);
  CHECK(sum({node("Add", {"zeros", "k"}, {"s"}, at(0)), node("Add", {"x", "s"}, {"y"}, at(1))}) == by_channel);
  CHECK(sum({node("Add", {"x", "five"}, {"y"}, at(3))}) == std::vector<double>{5, 6, 7, 8});
  CHECK_THROWS_WITH(sum({node("Add", {"x", "six"}, {"y"}, at(2))}), ContainsSubstring("at axis 2 of 4"));
}

TEST_CASE("an operator of another domain is not taken for ONNX's of the same name") {
  const std::string conv = node("Conv", {"x", "w"}, {"c"}), w = tensor("w", {1, 1, 1, 1}, {1}),
                    k = tensor("k", {1, 1, 1}, {2});
  const std::string add = node("Add", {"c", "k"}, {"y"}), sigmoid = node("Sigmoid", {"x"}, {"s"});
  const std::string mul = node("Mul", {"x", "s"}, {"y"});
  CHECK(read(of_nodes({conv, in_domain(add, "ai.onnx")}, {1, 1, 2, 2}, {w, k})).graph.nodes().size() == 2);
  CHECK_THROWS_WITH(read(of_nodes({conv, in_domain(add, "mine")}, {1, 1, 2, 2}, {w, k})), ContainsSubstring("'mine'"));
  CHECK_THROWS_WITH(read(of_nodes({sigmoid, in_domain(mul, "mine")}, {1, 1, 2, 2})), ContainsSubstring("'mine'"));
}

TEST_CASE("a batch norm normalises by the batch as its opset says it, and is refused then") {
  const auto norm = [](std::int64_t opset, std::initializer_list<std::string_view> outputs,
                       std::vector<Attribute> attributes = {}) {
    return of_opset(opset,
                    of_nodes({node("BatchNormalization", {"x", "one", "one", "one", "one"}, outputs, attributes)},
                             {2, 1, 2, 2}, {tensor("one", {1}, {1})}));
  };
  const std::vector<Attribute> tests = {{"is_test", std::int64_t{1}}}, trains = {{"training_mode", std::int64_t{1}}};
  for (const Model& model : {norm(6, {"y"}, tests), norm(9, {"y"}), norm(9, {"y", ""}), norm(14, {"y", "m", "v"})}) {
    CHECK(read(model).graph.nodes().size() == 2);
  }
  for (const Model& model : {norm(6, {"y"}), norm(9, {"y", "m", "v", "sm", "sv"}), norm(15, {"y", "m", "v"}, trains)}) {
    CHECK_THROWS_WITH(read(model), ContainsSubstring("by the batch"));
  }
}

TEST_CASE("the gates of an LSTM are those that its activations name") {
  const auto lstm = [](std::vector<Attribute> attributes, std::int64_t directions = 1) {
    const std::vector<float> weights(static_cast<std::size_t>(4 * directions), 1);
    return read(of_nodes({node("LSTM", {"x", "w", "r"}, {"y"}, std::move(attributes))}, {2, 1, 1},
                         {tensor("w", {directions, 4, 1}, weights), tensor("r", {directions, 4, 1}, weights)}));
  };
  const auto gates = [](const OnnxModel& model, std::size_t at = 1) {
    return std::get<Lstm>(model.graph.nodes()[at].op).gates;
  };
  const auto activations = [](std::initializer_list<const char*> names) {
    Attribute its("activations", "");
    its.bytes.clear();
    for (const char* each : names) protozero::pbf_writer(its.bytes).add_string(9, each);
    return its;
  };
  const auto alpha = [](float number) {
    Attribute its("activation_alpha", number);
    its.bytes.clear();
    protozero::pbf_writer(its.bytes).add_float(7, number);
    return its;
  };
  const Attribute usual = activations({"Sigmoid", "Tanh", "Tanh"}), hard = activations({"HardSigmoid", "Tanh", "Tanh"});
  CHECK(gates(lstm({})) == Gates::logistic);
  CHECK(gates(lstm({usual, alpha(0.3F)})) == Gates::logistic);
  CHECK(gates(lstm({hard})) == Gates::hard_sigmoid);
  CHECK(gates(lstm({hard, alpha(0.2F)})) == Gates::hard_sigmoid);
  const Attribute either = activations({"HardSigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh"});
  const OnnxModel both = lstm({{"direction", "bidirectional"}, either}, 2);
  CHECK(gates(both, 1) == Gates::hard_sigmoid);
  CHECK(gates(both, 2) == Gates::logistic);
  CHECK_THROWS_WITH(lstm({hard, alpha(0.3F)}), ContainsSubstring("hard sigmoid is not"));
  CHECK_THROWS_WITH(lstm({activations({"Sigmoid", "Tanh", "Relu"})}), ContainsSubstring("Relu"));
  CHECK_THROWS_AS(lstm({activations({"Tanh", "Tanh", "Tanh"})}), Unsupported);
  CHECK_THROWS_AS(lstm({activations({"Sigmoid", "Tanh"})}), FileError);
  CHECK_THROWS_AS(lstm({{"direction", "sideways"}}), FileError);
}

TEST_CASE("a model that was exported for training is read as one where the options say so") {
  Model model = of_nodes({node("BatchNormalization", {"x", "one", "zero", "zero", "one"}, {"n", "mean", "var"},
                               {{"training_mode", std::int64_t{1}}}),
                          node("Dropout", {"n", "quarter", "yes"}, {"y", "mask"})},
                         {2, 1, 1, 2},
                         {tensor("one", {1}, {1}), tensor("zero", {1}, {0}), tensor("quarter", {}, {0.25F}),
                          integers("yes", {1}), tensor("nothing", {}, {0})});
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'n'") && ContainsSubstring("OnnxOptions::training"));
  Model drops = model;
  drops.nodes[0] = node("Relu", {"x"}, {"n"});
  CHECK_THROWS_WITH(read(drops), ContainsSubstring("'y'") && ContainsSubstring("OnnxOptions::training"));
  const OnnxOptions options{.training = true};
  const OnnxModel trained = read(model, options);
  CHECK(trained.graph.node("n").op == Op(BatchNorm{}));
  CHECK(trained.graph.node("y").op == Op(Dropout{.rate = 0.25}));
  model.outputs = {value("mask", {})};
  CHECK_THROWS_WITH(read(model, options), ContainsSubstring("mask"));
  model.outputs = {value("mean", {})};
  CHECK_THROWS_WITH(read(model, options), ContainsSubstring("'mean' is used"));
  model.nodes[1] = node("Dropout", {"n", "nothing", "yes"}, {"y", "mask"});  // drops nothing, in training too
  model.outputs = {value("y", {})};
  CHECK(read(model, options).graph.node("y").op == Op(Dropout{.rate = 0}));
}

TEST_CASE("what regroups axes after a Pad finds the extents that it makes") {
  const std::string pad = node("Pad", {"x", "pads"}, {"p"}), pads = integers("pads", {0, 0, 1, 0, 0, 0, 0, 1});
  const std::vector<double> padded = {0, 0, 0, 0, 1, 0};
  const auto output = [&](const std::string& after, std::vector<std::string> initializers = {}) {
    initializers.push_back(pads);
    const OnnxModel model = read(of_nodes({pad, after}, {1, 1, 1, 2}, initializers));
    CHECK(output_of(model) == padded);
    return model.output.extents;
  };
  CHECK(output(node("Reshape", {"p", "to"}, {"y"}), {integers("to", {3, 2})}) == Extents{3, 2});
  CHECK(output(node("Reshape", {"p", "to"}, {"y"}), {integers("to", {0, -1})}) == Extents{1, 6});
  CHECK(output(node("Flatten", {"p"}, {"y"})) == Extents{1, 6});
  CHECK(output(node("Squeeze", {"p", "to"}, {"y"}), {integers("to", {0, 1})}) == Extents{2, 3});
  CHECK(output(node("Unsqueeze", {"p", "to"}, {"y"}), {integers("to", {0})}) == Extents{1, 1, 1, 2, 3});
}

TEST_CASE("a product of a value with itself goes on as any other where no LRN follows") {
  const auto after = [](const std::string& reader, const std::string& initializer) {
    return output_of(read(of_nodes({node("Mul", {"x", "x"}, {"s"}), reader}, {1, 1, 2, 2}, {initializer})));
  };
  CHECK(after(node("Mul", {"s", "k"}, {"y"}), tensor("k", {}, {2})) == std::vector<double>{0, 2, 8, 18});
  CHECK(after(node("Add", {"k", "s"}, {"y"}), tensor("k", {1}, {2})) == std::vector<double>{2, 3, 6, 11});
  CHECK(after(node("AveragePool", {"s"}, {"y"}, {{"kernel_shape", Extents{2, 1}}}), integers("none", {})) ==
        std::vector<double>{2, 5});
  CHECK(after(node("Pad", {"s", "k"}, {"y"}), integers("k", {0, 0, 0, 1, 0, 0, 0, 0})) ==
        std::vector<double>{0, 0, 1, 0, 4, 9});
}

TEST_CASE("shapes are computed as the format has it: whole numbers divide to whole ones, a range may be empty") {
  const auto reshaped = [](std::vector<std::string> nodes) {
    nodes.push_back(node("Concat", {"some", "rest"}, {"to"}, {{"axis", std::int64_t{0}}}));
    nodes.push_back(node("Reshape", {"x", "to"}, {"y"}));
    return read(of_nodes(std::move(nodes), {2, 3},
                         {integers("one", {1}), integers("rest", {-1}), integers("seven", {7}), integers("two", {2}),
                          integers("zero", {0}), integers("minus", {-1}), integers("many", {1, 2, 3}),
                          integers("huge", {std::int64_t{1} << 62})}))
        .output.extents;
  };
  const auto equal_numbers = [](std::string_view name, std::int64_t number) {
    Attribute its("value", std::int64_t{0});
    its.bytes.clear();
    protozero::pbf_writer(its.bytes).add_message(5, integers("", {number}));
    return node("ConstantOfShape", {"one"}, {name}, {its});
  };
  CHECK(reshaped({node("Div", {"seven", "two"}, {"some"})}) == Extents{3, 2});
  CHECK(reshaped({equal_numbers("a", 7), equal_numbers("b", 2), node("Div", {"a", "b"}, {"some"})}) == Extents{3, 2});
  CHECK(reshaped({node("Range", {"seven", "two", "one"}, {"some"})}) == Extents{6});
  const std::string backwards = node("Slice", {"none", "two", "one", "zero", "minus"}, {"some"});
  CHECK(reshaped({node("Range", {"seven", "two", "one"}, {"none"}), backwards}) == Extents{6});  // it slices nothing
  CHECK(reshaped({node("Slice", {"many", "one", "two", "zero", "huge"}, {"some"})}) == Extents{2, 3});
}

TEST_CASE("a node of a branch that nothing reads is not read") {
  const Model model{
      .nodes = {node(
                    "If", {"yes"}, {"c"},
                    {branch("then_branch",
                            {node("Relu", {"x"}, {}), node("LSTM", {"x", "w", "w"}, {"h"}), node("Tanh", {"x"}, {"a"})},
                            "a")}),
                node("Relu", {"c"}, {"y"})},
      .initializers = {integers("yes", {1}), tensor("w", {1, 4, 1}, {1, 2, 3, 4})},
      .inputs = {value("x", {2, 1, 1})},
      .outputs = {value("y", {2, 1, 1})}};
  CHECK(read(model).graph.nodes().size() == 3);
}

TEST_CASE("one channel is joined with others, and multiplied by a matrix, as several are") {
  const std::string parts = node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", std::int64_t{1}}});
  const auto joined = [&](const Extents& sizes, const char* first, const char* second) {
    const OnnxModel model = read(of_nodes({parts, node("Concat", {first, second}, {"y"}, {{"axis", std::int64_t{1}}})},
                                          {2, 3, 1, 1}, {integers("sizes", sizes)}));
    CHECK(model.output.extents == Extents{2, 3, 1, 1});
    return output_of(model);
  };
  CHECK(joined({2, 1}, "b", "a") == std::vector<double>{2, 0, 1, 5, 3, 4});
  CHECK(joined({1, 2}, "b", "a") == std::vector<double>{1, 2, 0, 4, 5, 3});
  const OnnxModel rows =
      read(of_nodes({node("MatMul", {"x", "w"}, {"y"})}, {1, 2, 1}, {tensor("w", {1, 3}, {1, 10, 100})}));
  CHECK(rows.output.extents == Extents{1, 2, 3});
  CHECK(output_of(rows) == std::vector<double>{0, 0, 0, 1, 10, 100});
}

TEST_CASE("nodes keep their names, whatever they are, also where they are those of another's parameters") {
  Graph graph("odd names");
  Value x = graph.input({2, 8, 4, 4}, "in put/\"0\"");
  x = conv(x, "a", {.channels = 8, .kernel = 1});
  x = relu(x, "a.weight");
  x = channel_shuffle(x, "a.bias", {.groups = 2});
  x = channel_shuffle(x, "a.bias.grouped", {.groups = 2});
  x = clip(x, "\xc3\xa9t\xc3\xa9\n", {.low = 0, .high = 6});
  x = sigmoid(fully_connected(x, "b.shape", {.outputs = 3}), "b.shape.flat");
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  write_onnx(folder / "odd.onnx", graph, weights);
  const OnnxModel back = read_onnx(folder / "odd.onnx", {.batch = 2});
  REQUIRE(back.graph.nodes().size() == graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    CHECK(back.graph.nodes()[i].name == graph.nodes()[i].name);
    CHECK(back.graph.nodes()[i].op == graph.nodes()[i].op);
  }
  for (const auto& [name, tensor] : weights) CHECK(back.weights.at(name).values == tensor.values);
}
