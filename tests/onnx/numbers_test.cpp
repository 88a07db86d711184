// Numbers that are computed while a file is read: constants, and factors and shifts that are joined.

#include <cmath>
#include <limits>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

/// The k that the nodes make: y = x + k of the x 0.
double computed(const std::string& text) {
  return output_of(read("x[1,1]; " + text + " r = Relu(x) y = Add(r, k)")).at(0);
}

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

TEST_CASE("Max, Min and Sum of constants take any number of them, and a NaN stays") {
  const auto of_three = [](const std::string& op, const std::string& b) {
    return computed("a[1] = 1; b[1] = " + b + "; c[1] = 5; k = " + op + "(a, b, c)");
  };
  CHECK(of_three("Max", "2") == 5);
  CHECK(of_three("Min", "-2") == -2);
  CHECK(of_three("Sum", "2") == 8);
  CHECK(std::isnan(of_three("Max", "nan")));
  CHECK(std::isnan(of_three("Min", "nan")));
  CHECK(computed("a[1] = 3; k = Max(a)") == 3);
}

TEST_CASE("a constant that is cast has the numbers of its type") {
  const auto cast = [](const std::string& a, int to) {
    return computed("a" + a + " b = Cast<to=" + std::to_string(to) + ">(a) k = Cast<to=11>(b)");
  };
  constexpr int u8 = 2, i8 = 3, i32 = 6, i64 = 7, boolean = 9, f16 = 10, bf16 = 16;
  CHECK(cast("[1] = 1.0006", f16) == 1.0009765625);
  CHECK(cast("[1] = 70000", f16) == endless);
  CHECK(cast("[1] = 1.004", bf16) == 1.0078125);
  CHECK(cast("[1] = -2.7", i32) == -2);
  CHECK(cast("[1] = 300", u8) == 255);
  CHECK(cast("[1] = -3", u8) == 0);
  CHECK(cast("[1] = nan", i32) == 0);
  CHECK(cast("[1] = 0.5", boolean) == 1);
  CHECK(cast(" = {200}", i8) == -56);  // the low bits
  CHECK(cast(" = {-1}", u8) == 255);
  CHECK(cast(" = {21474836480}", i32) == 0);  // 5 * 2^32
  CHECK(cast(" = {9223372036854775807}", i64) > 9e18);
  CHECK(computed("a[1] = -2.7; like[1] = {1} b = CastLike(a, like) k = Cast<to=11>(b)") == -2);
}
