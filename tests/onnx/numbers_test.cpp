// Numbers that need care: factors and shifts that are joined, and gradients where a function has a kink.

#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a factor after a shift is another op, so that no digits are lost, unless it is a power of 2") {
  const auto normalised = [](const std::string& mean, const std::string& deviation, DType dtype) {
    const OnnxModel model = read("x[1,1,1,2] mean[1,1,1] = " + mean + "; deviation[1,1,1] = " + deviation +
                                 "; m = Sub(x, mean) y = Div(m, deviation)");
    return std::pair(model.graph.nodes().size(), output_of(model, dtype));
  };
  const auto [ops, y] = normalised("-101325", "10", DType::f32);  // of 0 and 1
  CHECK(ops == 3);
  CHECK(y[0] == 10132.5);
  CHECK(y[1] == Approx(10132.6).epsilon(2e-7));  // two roundings
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
