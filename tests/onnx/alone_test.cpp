// What is read with the ops that there are: layers on constants, parts that are views, means over steps, sequences of
// columns, differences and squares; and what needs no op at all.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

const std::int64_t none = 0, one = 1;

/// An LSTM of two hidden values on three features.
std::vector<std::string> lstm_weights(float factor = 0.01F) {
  const auto counted = [&](std::size_t count) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = factor * static_cast<float>(i % 7) - 3 * factor;
    return numbers;
  };
  return {tensor("w", {1, 8, 3}, counted(24)), tensor("r", {1, 8, 2}, counted(16))};
}

std::string lstm(std::initializer_list<std::string_view> outputs) {
  return node("LSTM", {"s", "w", "r"}, outputs, {{"hidden_size", std::int64_t{2}}}, "lstm");
}

}  // namespace

TEST_CASE("weights that a file computes by layers are folded") {
  const auto folded = [](std::vector<std::string> nodes, std::vector<std::string> initializers) {
    nodes.push_back(node("Add", {"x", "k"}, {"y"}));
    initializers.push_back(tensor("v", {2, 2}, {1, 3, -2, 6}));
    return read(of_nodes(nodes, {1, 4, 1, 1}, initializers)).weights.at("y.shift").values;
  };
  const auto flat = node("Reshape", {"f", "shape"}, {"k"});
  const auto shape = integers("shape", {4, 1, 1});
  using Values = std::vector<double>;
  CHECK(folded({node("Clip", {"v", "zero", "five"}, {"f"}), flat},
               {shape, tensor("zero", {}, {0}), tensor("five", {}, {5})}) == Values{1, 3, 0, 5});
  CHECK(folded({node("MatMul", {"v", "m"}, {"f"}), flat}, {shape, tensor("m", {2, 2}, {1, 10, 2, 20})}) ==
        Values{7, 70, 10, 100});
  const OnnxModel rows = read(of_nodes({node("MatMul", {"v", "m"}, {"k"}), node("Add", {"x", "k"}, {"y"})}, {1, 2},
                                       {tensor("v", {2, 2}, {1, 3, -2, 6}), tensor("m", {2}, {1, -1})}));
  CHECK(rows.weights.at("y.shift").values == Values{-2, -8});
  CHECK(folded({node("ReduceProd", {"v"}, {"k"})}, {}) == Values{-36});
  CHECK(folded({node("Mod", {"v", "three"}, {"f"}, {{"fmod", one}}), flat}, {shape, tensor("three", {}, {4})}) ==
        Values{1, 3, -2, 2});
  const std::vector<std::string> norm = {tensor("one", {2}, {1, 2}), tensor("zero", {2}, {0, 1}),
                                         tensor("four", {2}, {4, 4})};
  const auto with_shape = [&](std::vector<std::string> all) {
    all.push_back(shape);
    return all;
  };
  const auto close = [](const Values& a, const Values& b) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-12));
  };
  const std::vector<Attribute> by_numbers = {{"epsilon", 0.F}};
  close(folded({node("BatchNormalization", {"v", "one", "zero", "one", "four"}, {"f"}, by_numbers), flat},
               with_shape(norm)),
        {0, 2, -1.5, 5});
  const std::vector<Attribute> by_batch = {{"epsilon", 0.F}, {"training_mode", one}};
  close(folded({node("BatchNormalization", {"v", "one", "zero", "one", "four"}, {"f", "m", "s"}, by_batch), flat},
               with_shape(norm)),
        {1, -1, -1, 3});
}

TEST_CASE("extents are computed by Mod and Clip as by any other arithmetic") {
  const OnnxModel model = read(of_nodes(
      {node("Shape", {"x"}, {"all"}), node("Gather", {"all", "three"}, {"w"}), node("Mod", {"w", "two"}, {"m"}),
       node("Clip", {"m", "", "two"}, {"c"}), node("Concat", {"zeros", "c", "zeros", "c"}, {"pads"}, {{"axis", none}}),
       node("Pad", {"x", "pads"}, {"y"})},
      {1, 2, 3, 5}, {integers("three", {3}), integers("two", {2}), integers("zeros", {0, 0, 0})}));
  CHECK(model.output.extents == Extents{1, 2, 3, 7});
}

TEST_CASE("a difference of two values, and a square, are Add and Multiply") {
  const std::string tanh = node("Tanh", {"x"}, {"t"});
  const OnnxModel difference = read(of_nodes({tanh, node("Sub", {"x", "t"}, {"y"}, {}, "d")}, {1, 2, 1, 1}));
  CHECK(op_of(difference) == Op(Add{}));
  CHECK(output_of(difference)[1] == Approx(1 - std::tanh(1)));
  const OnnxModel square = read(of_nodes({node("Pow", {"x", "two"}, {"y"})}, {1, 4}, {tensor("two", {}, {2})}));
  CHECK(op_of(square) == Op(Multiply{}));
  CHECK(output_of(square) == std::vector<double>{0, 1, 4, 9});
  CHECK_THROWS_AS(read(of_nodes({node("Pow", {"x", "k"}, {"y"})}, {1, 4}, {tensor("k", {}, {3})})), Unsupported);
}

TEST_CASE("an index of an axis of one element is a view, and one of channels a Slice") {
  const auto last = [](const char* index, std::int64_t at, const Extents& x, std::int64_t axis) {
    return read(
        of_nodes({node("Gather", {"x", "i"}, {"g"}, {{"axis", axis}}), node("Relu", {"g"}, {"y"})}, x,
                 {std::string(index) == "list" ? integers("i", {at}) : tensor("i", {}, {static_cast<float>(at)})}));
  };
  const OnnxModel view = last("number", -1, {2, 1, 3}, 1);
  CHECK(view.graph.nodes().size() == 2);
  CHECK(view.output.extents == Extents{2, 3});
  CHECK(last("list", 0, {2, 1, 3}, 1).output.extents == Extents{2, 1, 3});
  const OnnxModel channel = last("number", 2, {2, 4, 1, 2}, 1);
  CHECK(channel.output.extents == Extents{2, 1, 2});
  CHECK(output_of(channel) == std::vector<double>{4, 5, 12, 13});
  CHECK_THROWS_AS(last("number", 4, {2, 4, 1, 2}, 1), FileError);
  CHECK_THROWS_AS(last("number", 1, {2, 4, 3, 2}, 2), Unsupported);
}

TEST_CASE("everything in order under other extents is a view, also for another batch") {
  Model model = of_nodes(
      {node("Reshape", {"x", "flat"}, {"f"}), node("Gather", {"f", "all"}, {"g"}), node("Gemm", {"g", "m"}, {"y"})},
      {2, 3, 1, 1}, {integers("flat", {-1}), tensor("m", {3, 1}, {1, 10, 100})});
  model.initializers.push_back([] {
    std::string bytes;
    protozero::pbf_writer writer(bytes);
    const Extents dims = {2, 3}, values = {0, 1, 2, 3, 4, 5};
    writer.add_packed_int64(1, dims.begin(), dims.end());
    writer.add_int32(2, 7);
    writer.add_packed_int64(7, values.begin(), values.end());
    writer.add_string(8, "all");
    return bytes;
  }());
  CHECK(output_of(read(model)) == std::vector<double>{210, 543});
  CHECK(output_of(read(model, {.batch = 3})) == std::vector<double>{210, 543, 876});
}

TEST_CASE("means and maxima are taken over steps, rows or columns") {
  const auto reduced = [](const char* op, const Extents& axes, const Extents& x, std::int64_t keepdims) {
    return read(
        of_nodes({node("Relu", {"x"}, {"r"}), node(op, {"r"}, {"y"}, {{"axes", axes}, {"keepdims", keepdims}})}, x));
  };
  const OnnxModel rows = reduced("ReduceMean", {2}, {1, 2, 2, 3}, 0);
  CHECK(rows.output.extents == Extents{1, 2, 3});
  CHECK(output_of(rows) == std::vector<double>{1.5, 2.5, 3.5, 7.5, 8.5, 9.5});
  const OnnxModel columns = reduced("ReduceMax", {-1}, {1, 2, 2, 3}, 1);
  CHECK(columns.output.extents == Extents{1, 2, 2, 1});
  CHECK(output_of(columns) == std::vector<double>{2, 5, 8, 11});
  CHECK(op_of(reduced("ReduceMean", {2}, {2, 3, 5}, 0)) == Op(GlobalAveragePool{}));
  CHECK(reduced("ReduceMean", {2, 3}, {2, 3, 1, 1}, 0).graph.nodes().size() == 2);
  CHECK_THROWS_AS(reduced("ReduceMean", {1}, {1, 2, 2, 3}, 1), Unsupported);

  for (const bool maximum : {false, true}) {  // over the steps of a sequence that has time first
    std::vector<std::string> weights = lstm_weights();
    const OnnxModel steps = read(
        of_nodes({node("Transpose", {"x"}, {"s"}, {{"perm", Extents{1, 0, 2}}}), lstm({"h"}),
                  node("Squeeze", {"h"}, {"q"}, {{"axes", Extents{1}}}),
                  node("Transpose", {"q"}, {"t"}, {{"perm", Extents{1, 0, 2}}}),
                  node(maximum ? "ReduceMax" : "ReduceMean", {"t"}, {"y"}, {{"axes", Extents{1}}, {"keepdims", none}})},
                 {2, 4, 3}, weights, 12));
    CHECK(steps.output.extents == Extents{2, 2});
    CHECK(op_of(steps) == (maximum ? Op(MaxPool{.window = {4, 1}, .stride = {4, 1}}) : Op(GlobalAveragePool{})));
  }
}

TEST_CASE("an LSTM reads the columns of an image of one row as it reads rows, forward and backward") {
  const auto model = [](bool columns) {
    std::vector<std::string> nodes = {node("Conv", {"x", "filter"}, {"c"}, {}, "conv")};
    nodes.push_back(node("Squeeze", {"c"}, {"q"}, {{"axes", Extents{columns ? 2 : 3}}}));
    nodes.push_back(node("Transpose", {"q"}, {"s"}, {{"perm", Extents{2, 0, 1}}}));
    nodes.push_back(lstm({"y"}));
    std::vector<std::string> initializers = lstm_weights();
    initializers.push_back(tensor("filter", {3, 1, 1, 1}, {0.01F, 0.02F, -0.01F}));
    return read(of_nodes(nodes, columns ? Extents{2, 1, 1, 5} : Extents{2, 1, 5, 1}, initializers, 12));
  };
  const OnnxModel columns = model(true), rows = model(false);
  CHECK(columns.output.extents == Extents{5, 1, 2, 2});
  CHECK(output_of(columns) == output_of(rows));
  const auto backend = make_backend("eigen");
  std::vector<std::vector<double>> gradients;
  for (const OnnxModel* each : {&columns, &rows}) {
    Plan plan(each->graph, *backend, {.dtype = DType::f64, .seed = 5});
    load_weights(plan, each->weights);
    plan.forward();
    plan.backward();
    gradients.emplace_back(3);
    download(backend->device(), gradients.back(), plan.parameter_gradient("conv.weight"));
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("what gives its input costs nothing, and the same pool of a value is computed once") {
  const auto nodes_of = [](const std::string& its) {
    const OnnxModel model = read(of_nodes({node("Relu", {"x"}, {"r"}), its, node("Relu", {"p"}, {"y"})}, {1, 2, 3, 3},
                                          {tensor("zero", {}, {0}), tensor("one", {2, 1, 1}, {1, 1})}));
    return model.graph.nodes().size();
  };
  const Extents both = {1, 1};
  CHECK(nodes_of(node("Add", {"r", "zero"}, {"p"})) == 3);
  CHECK(nodes_of(node("Mul", {"one", "r"}, {"p"})) == 3);
  CHECK(nodes_of(node("Sub", {"zero", "r"}, {"p"})) == 4);
  CHECK(nodes_of(node("AveragePool", {"r"}, {"p"}, {{"kernel_shape", both}})) == 3);
  CHECK(nodes_of(node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", both}, {"strides", Extents{2, 2}}})) == 4);

  const auto pool = [](const char* y, std::int64_t stride) {
    return node("MaxPool", {"x"}, {y}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{stride, stride}}});
  };
  const auto sum = [&](std::int64_t other) {
    return read(of_nodes({pool("a", 1), pool("b", other), node("Add", {"a", "b"}, {"y"})}, {1, 1, 2, 2})).graph.nodes();
  };
  CHECK(sum(1).size() == 3);
  CHECK(sum(1).back().inputs == std::vector<int>{1, 1});
  CHECK(sum(2).size() == 4);
}

TEST_CASE("an LSTM with initial states for the file's batch is read for another") {
  Model model = of_nodes(
      {node("Shape", {"s"}, {"all"}), node("Slice", {"all", "i", "j"}, {"n"}),
       node("Concat", {"one", "n", "two"}, {"shape"}, {{"axis", none}}), node("Expand", {"h0", "shape"}, {"h"}),
       node("LSTM", {"s", "w", "r", "", "", "h", "h"}, {"y"}, {{"hidden_size", std::int64_t{2}}})},
      {2, 4, 3}, lstm_weights());
  model.nodes.insert(model.nodes.begin(), node("Transpose", {"x"}, {"s"}, {{"perm", Extents{1, 0, 2}}}));
  for (const auto& each : {integers("i", {1}), integers("j", {2}), integers("one", {1}), integers("two", {2}),
                           tensor("h0", {1, 2, 2}, {0, 0, 0, 0})})
    model.initializers.push_back(each);
  for (const int batch : {1, 2, 3}) CHECK(read(model, {.batch = batch}).output.extents == Extents{4, 1, batch, 2});
  model.initializers.back() = tensor("h0", {1, 2, 2}, {0, 0, 0, 1});
  CHECK_THROWS_AS(read(model, {.batch = 3}), FileError);
}

TEST_CASE(
    "a constant of a computed value's type is a constant, and random numbers are refused with the way to leave them "
    "out") {
  const OnnxModel like = read(
      of_nodes({node("CastLike", {"k", "x"}, {"c"}), node("Add", {"x", "c"}, {"y"})}, {1, 2}, {tensor("k", {}, {3})}));
  CHECK(output_of(like) == std::vector<double>{3, 4});
  const Model depth = of_nodes({node("RandomUniformLike", {"k"}, {"r"}), node("Mul", {"x", "r"}, {"y"})}, {1, 2, 1, 1},
                               {tensor("k", {1, 1, 1, 1}, {0})});
  CHECK_THROWS_WITH(read(depth), Catch::Matchers::ContainsSubstring("set its p to 0 before the export"));
}
