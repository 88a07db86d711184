// What is read with the ops that there are: layers on constants, parts that are views, means over pixels, differences
// and squares, slopes; and what needs no op at all.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

TEST_CASE("weights that a file computes by layers are folded") {
  const auto folded = [](const std::string& text) {
    return read("x[1,4,1,1] v[2,2] = 1, 3, -2, 6; shape = {4, 1, 1}" + text + "y = Add(x, k)")
        .weights.at("y.shift")
        .values;
  };
  const std::string flat = " k = Reshape(f, shape) ";
  CHECK(folded("zero[] = 0; five[] = 5; f = Clip(v, zero, five)" + flat) == Values{1, 3, 0, 5});
  CHECK(folded("m[2,2] = 1, 10, 2, 20; f = MatMul(v, m)" + flat) == Values{7, 70, 10, 100});
  const OnnxModel rows = read("x[1,2] v[2,2] = 1, 3, -2, 6; m[2] = 1, -1; k = MatMul(v, m) y = Add(x, k)");
  CHECK(rows.weights.at("y.shift").values == Values{-2, -8});
  CHECK(folded("k = ReduceProd(v) ") == Values{-36});
  CHECK(folded("three[] = 4; f = Mod<fmod=1>(v, three)" + flat) == Values{1, 3, -2, 2});
  const std::string norm = "one[2] = 1, 2; zero[2] = 0, 1; four[2] = 4, 4;";
  const auto close = [](const Values& a, const Values& b) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-12));
  };
  close(folded(norm + "f = BatchNormalization<epsilon=0.0>(v, one, zero, one, four)" + flat), {0, 2, -1.5, 5});
  close(folded(norm + "f, m, s = BatchNormalization<epsilon=0.0, training_mode=1>(v, one, zero, one, four)" + flat),
        {1, -1, -1, 3});
}

TEST_CASE("extents are computed by Mod and Clip as by any other arithmetic") {
  const OnnxModel model = read(R"(
    x[1,2,3,5] three = {3}; two = {2}; zeros = {0, 0, 0}
    all = Shape(x) w = Gather(all, three) m = Mod(w, two) c = Clip(m, , two)
    pads = Concat<axis=0>(zeros, c, zeros, c) y = Pad(x, pads))");
  CHECK(model.output.extents == Extents{1, 2, 3, 7});
}

TEST_CASE("a difference of two values, and a square, are Add and Multiply") {
  const OnnxModel difference = read("x[1,2,1,1] t = Tanh(x) y = Sub(x, t) \"d\"");
  CHECK(op_of(difference) == Op(Add{}));
  CHECK(output_of(difference)[1] == Approx(1 - std::tanh(1)));
  const OnnxModel square = read("x[1,4] two[] = 2; y = Pow(x, two)");
  CHECK(op_of(square) == Op(Multiply{}));
  CHECK(output_of(square) == Values{0, 1, 4, 9});
  CHECK_THROWS_AS(read("x[1,4] k[] = 3; y = Pow(x, k)"), Unsupported);
}

TEST_CASE("an index of an axis of one element is a view, and one of channels a Slice") {
  const auto last = [](const char* index, const char* x, int axis) {
    return read("x" + std::string(x) + " i" + index + " g = Gather<axis=" + std::to_string(axis) +
                ">(x, i) y = Relu(g)");
  };
  const OnnxModel view = last("[] = -1", "[2,1,3]", 1);
  CHECK(view.graph.nodes().size() == 2);
  CHECK(view.output.extents == Extents{2, 3});
  CHECK(last("= {0}", "[2,1,3]", 1).output.extents == Extents{2, 1, 3});
  const OnnxModel channel = last("[] = 2", "[2,4,1,2]", 1);
  CHECK(channel.output.extents == Extents{2, 1, 2});
  CHECK(output_of(channel) == Values{4, 5, 12, 13});
  CHECK_THROWS_AS(last("[] = 4", "[2,4,1,2]", 1), FileError);
  CHECK_THROWS_AS(last("[] = 1", "[2,4,3,2]", 2), Unsupported);
}

TEST_CASE("everything in order under other extents is a view, also for another batch") {
  const Model model = R"(
    x[2,3,1,1] flat = {-1}; m[3,1] = 1, 10, 100; all[2,3] = {0, 1, 2, 3, 4, 5}
    f = Reshape(x, flat) g = Gather(f, all) y = Gemm(g, m))";
  CHECK(output_of(read(model)) == Values{210, 543});
  CHECK(output_of(read(model, {.batch = 3})) == Values{210, 543, 876});
}

TEST_CASE("means and maxima are taken over steps, rows or columns") {
  const auto reduced = [](const std::string& x, const std::string& op, const std::string& attributes) {
    return read("x" + x + " r = Relu(x) y = " + op + "<" + attributes + ">(r)");
  };
  const OnnxModel rows = reduced("[1,2,2,3]", "ReduceMean", "axes=[2], keepdims=0");
  CHECK(rows.output.extents == Extents{1, 2, 3});
  CHECK(output_of(rows) == Values{1.5, 2.5, 3.5, 7.5, 8.5, 9.5});
  const OnnxModel columns = reduced("[1,2,2,3]", "ReduceMax", "axes=[-1]");
  CHECK(columns.output.extents == Extents{1, 2, 2, 1});
  CHECK(output_of(columns) == Values{2, 5, 8, 11});
  CHECK(op_of(reduced("[2,3,5]", "ReduceMean", "axes=[2], keepdims=0")) == Op(GlobalAveragePool{}));
  CHECK(reduced("[2,3,1,1]", "ReduceMean", "axes=[2,3], keepdims=0").graph.nodes().size() == 2);
  CHECK_THROWS_AS(reduced("[1,2,2,3]", "ReduceMean", "axes=[1]"), Unsupported);
}

TEST_CASE("what gives its input costs nothing, and the same pool of a value is computed once") {
  const auto nodes_of = [](const std::string& its) {
    return read("x[1,2,3,3] zero[] = 0; one[2,1,1] = all 1; r = Relu(x) p = " + its + " y = Relu(p)")
        .graph.nodes()
        .size();
  };
  CHECK(nodes_of("Add(r, zero)") == 3);
  CHECK(nodes_of("Mul(one, r)") == 3);
  CHECK(nodes_of("Sub(zero, r)") == 4);
  CHECK(nodes_of("AveragePool<kernel_shape=[1,1]>(r)") == 3);
  CHECK(nodes_of("MaxPool<kernel_shape=[1,1], strides=[2,2]>(r)") == 4);

  const auto sum = [&](const std::string& stride) {
    return read(
               "x[1,1,2,2] a = MaxPool<kernel_shape=[2,2], strides=[1,1]>(x)"
               "b = MaxPool<kernel_shape=[2,2], strides=[" +
               stride + "]>(x) y = Add(a, b)")
        .graph.nodes();
  };
  CHECK(sum("1,1").size() == 3);
  CHECK(sum("1,1").back().inputs == std::vector<int>{1, 1});
  CHECK(sum("2,2").size() == 4);
}

TEST_CASE(
    "a constant of a computed value's type is a constant, and random numbers are refused with the way to leave them "
    "out") {
  CHECK(output_of(read("x[1,2] k[] = 3; c = CastLike(k, x) y = Add(x, c)")) == Values{3, 4});
  CHECK_THROWS_WITH(read("x[1,2,1,1] k[1,1,1,1] = 0; r = RandomUniformLike(k) y = Mul(x, r)"),
                    Catch::Matchers::ContainsSubstring("set its p to 0 before the export"));
}

TEST_CASE("a LeakyRelu and a PRelu are a Relu and what is below 0 by a slope, also for the gradient at 0") {
  const auto of = [](const std::string& function, const std::string& x = "[1,2,1,2]") {
    return read("x" + x + " one[] = 1; all[1] = 0.125; each[2,1,1] = 0.5, 0.25; m = Sub(x, one) y = " + function);
  };
  CHECK(output_of(of("LeakyRelu<alpha=0.5>(m)")) == Values{-0.5, 0, 1, 2});
  CHECK(output_of(of("LeakyRelu(m)"))[0] == -0.01);
  CHECK(output_of(of("PRelu(m, all)", "[1,4]")) == Values{-0.125, 0, 1, 2});
  CHECK_THROWS_AS(of("PRelu(m, each)", "[1,3,2,2]"), Unsupported);
  CHECK_THROWS_AS(of("PRelu(m, m)"), Unsupported);
  const OnnxModel model = of("PRelu(x, each)");
  CHECK(model.graph.parameters().size() == 1);
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.dtype = DType::f64, .input_gradient = true});
  load_weights(plan, model.weights);
  Values dx(4), dslope(2);
  upload(backend->device(), plan.input(), Values{-3, 0, -2, 5});
  plan.forward();
  upload(backend->device(), plan.output_gradient(), Values{1, 10, 100, 1000});
  plan.backward();
  download(backend->device(), dx, plan.input_gradient());
  download(backend->device(), dslope, plan.parameter_gradient("y.slope.scale"));
  CHECK(dx == Values{0.5, 5, 25, 1000});
  CHECK(dslope == Values{-3, -200});
}
