// Numbers that need care: factors and shifts that become one op, gradients at kinks, and sequences in rows or columns.

#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina::test;

TEST_CASE("a factor after a shift is a separate op, which loses no digits, unless the factor is a power of 2") {
  constexpr double endless = std::numeric_limits<double>::infinity();
  const auto normalised = [](const std::string& mean, const std::string& deviation, DType dtype) {
    const OnnxModel model = read("x[1,1,1,2] mean[1,1,1] = " + mean + "; deviation[1,1,1] = " + deviation +
                                 "; m = Sub(x, mean) y = Div(m, deviation)");
    return std::pair(model.graph.nodes().size(), output_of(model, dtype));
  };
  const auto [ops, y] = normalised("-101325", "10", DType::f32);  // for x = 0 and 1
  CHECK(ops == 3);
  CHECK(y[0] == 10132.5);
  CHECK(y[1] == Approx(10132.6).epsilon(2e-7));  // rounded twice
  CHECK(normalised("0.5", "0.5", DType::f32) == std::pair(std::size_t{2}, Values{-1, 1}));
  CHECK(normalised("0.5", "0", DType::f64).second == Values{-endless, endless});
  const std::vector<double> from_zero = normalised("0", "0", DType::f64).second;
  CHECK(std::isnan(from_zero[0]));
  CHECK(from_zero[1] == endless);
}

TEST_CASE("the gradient of a PRelu at 0 is its slope, as in PyTorch") {
  const OnnxModel model = read("x[1,2,1,2] slope[2,1,1] = 0.5, 0.25; y = PRelu(x, slope)");
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.dtype = DType::f64, .input_gradient = true});
  load_weights(plan, model.weights);
  Values dx(4), dslope(2);
  upload(backend->device(), plan.input(), Values{-3, 0, -2, 5});
  plan.forward();
  upload(backend->device(), plan.output_gradient(), Values{1, 10, 100, 1000});
  plan.backward();
  download(backend->device(), dx, plan.input_gradient());
  download(backend->device(), dslope, plan.parameter_gradient("y.weight"));
  CHECK(dx == Values{0.5, 5, 25, 1000});
  CHECK(dslope == Values{-3, -200});
}

TEST_CASE("an LSTM reads the columns of an image of one row like the rows of an image of one column") {
  const auto model = [](const char* x, const char* axis) {
    return read("opset 12; filter[3,1,1,1] = .01, .02, -.01; x" + std::string(x) + R"(
      w[1,8,3] = -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02,
                 .03, -.03, -.02, -.01
      r[1,8,2] = -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02
      c = Conv(x, filter) "conv" q = Squeeze<axes=[)" +
                axis + "]>(c) " + R"(
      s = Transpose<perm=[2,0,1]>(q) y = LSTM<hidden_size=2>(s, w, r) "lstm")");
  };
  const OnnxModel columns = model("[2,1,1,5]", "2"), rows = model("[2,1,5,1]", "3");
  CHECK(columns.output.extents == Extents{5, 1, 2, 2});
  CHECK(output_of(columns) == output_of(rows));
  const auto backend = make_backend("eigen");
  std::vector<Values> gradients;
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
