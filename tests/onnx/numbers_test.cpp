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
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// The k that the nodes make: y = x + k of the x 0.
double computed(std::vector<std::string> nodes, std::vector<std::string> initializers) {
  nodes.push_back(node("Relu", {"x"}, {"r"}));
  nodes.push_back(node("Add", {"r", "k"}, {"y"}));
  return output_of(read(of_nodes(std::move(nodes), {1, 1}, std::move(initializers)))).at(0);
}

}  // namespace

TEST_CASE("a factor after a shift is another op, so that no digits are lost, unless it is a power of 2") {
  const auto normalised = [](float mean, float deviation, DType dtype) {
    const OnnxModel model =
        read(of_nodes({node("Sub", {"x", "mean"}, {"m"}), node("Div", {"m", "deviation"}, {"y"})}, {1, 1, 1, 2},
                      {tensor("mean", {1, 1, 1}, {mean}), tensor("deviation", {1, 1, 1}, {deviation})}));
    return std::pair(model.graph.nodes().size(), output_of(model, dtype));
  };
  const auto [ops, y] = normalised(-101325, 10, DType::f32);  // of 0 and 1
  CHECK(ops == 3);
  CHECK(y[0] == 10132.5);
  CHECK(y[1] == Approx(10132.6).epsilon(2e-7));  // two roundings
  CHECK(normalised(0.5F, 0.5F, DType::f32) == std::pair(std::size_t{2}, std::vector<double>{-1, 1}));
  const std::vector<double> over_zero = normalised(0.5F, 0, DType::f64).second;
  CHECK(over_zero == std::vector<double>{-endless, endless});
  const std::vector<double> from_zero = normalised(0, 0, DType::f64).second;
  CHECK(std::isnan(from_zero[0]));
  CHECK(from_zero[1] == endless);
}

TEST_CASE("Max, Min and Sum of constants take any number of them, and a NaN stays") {
  const auto of_three = [](const char* op, float b) {
    return computed({node(op, {"a", "b", "c"}, {"k"})},
                    {tensor("a", {1}, {1}), tensor("b", {1}, {b}), tensor("c", {1}, {5})});
  };
  CHECK(of_three("Max", 2) == 5);
  CHECK(of_three("Min", -2) == -2);
  CHECK(of_three("Sum", 2) == 8);
  CHECK(std::isnan(of_three("Max", no_number)));
  CHECK(std::isnan(of_three("Min", no_number)));
  CHECK(computed({node("Max", {"a"}, {"k"})}, {tensor("a", {1}, {3})}) == 3);
}

TEST_CASE("a constant that is cast has the numbers of its type") {
  const auto cast = [](const std::string& a, std::int64_t to) {
    return computed({node("Cast", {"a"}, {"b"}, {{"to", to}}), node("Cast", {"b"}, {"k"}, {{"to", std::int64_t{11}}})},
                    {a});
  };
  const auto real = [](float number) { return tensor("a", {1}, {number}); };
  constexpr std::int64_t u8 = 2, i8 = 3, i32 = 6, boolean = 9, f16 = 10, bf16 = 16;
  CHECK(cast(real(1.0006F), f16) == 1.0009765625);
  CHECK(cast(real(70000), f16) == endless);
  CHECK(cast(real(1.004F), bf16) == 1.0078125);
  CHECK(cast(real(-2.7F), i32) == -2);
  CHECK(cast(real(300), u8) == 255);
  CHECK(cast(real(-3), u8) == 0);
  CHECK(cast(real(no_number), i32) == 0);
  CHECK(cast(real(0.5F), boolean) == 1);
  CHECK(cast(integers("a", {200}), i8) == -56);  // the low bits
  CHECK(cast(integers("a", {-1}), u8) == 255);
  CHECK(cast(integers("a", {std::int64_t{5} << 32}), i32) == 0);
}
