// Initialisers: the bounds and moments of their numbers, orthogonality, and names.

#include "lamina/initialisers.h"
#include "lamina/random.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"

using namespace lamina;

namespace {

struct Moments {
  double mean = 0, variance = 0, least = 0, largest = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments m{.least = values[0], .largest = values[0]};
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n, m.least = std::min(m.least, v), m.largest = std::max(m.largest, v);
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean) / n;
  return m;
}

/// The dot product of rows (or columns) i and j of a matrix. Neighbouring rows are `step` elements apart, and
/// neighbouring elements of a row `stride` elements.
double product(const std::vector<double>& m, std::size_t i, std::size_t j, std::size_t step, std::size_t stride,
               std::size_t length) {
  double sum = 0;
  for (std::size_t k = 0; k < length; ++k) sum += m[i * step + k * stride] * m[j * step + k * stride];
  return sum;
}

}  // namespace

TEST_CASE("fans are counted as Keras counts them") {
  CHECK(conv_fans({32, 3, 5, 7}).in == 3 * 5 * 7);
  CHECK(conv_fans({32, 3, 5, 7}).out == 32 * 5 * 7);
  CHECK(dense_fans({128, 64, 12, 11}).in == 64 * 12 * 11);
  CHECK(dense_fans({128, 64, 12, 11}).out == 128);
  CHECK(dense_fans({4 * 64, 128, 1, 1}).in == 128);  // the weights of an LSTM's four gates
  CHECK(dense_fans({4 * 64, 128, 1, 1}).out == 256);
}

TEST_CASE("Glorot's uniform numbers fill the right interval and have the right variance") {
  std::vector<double> w(100000);
  fill_glorot_uniform(w, {.in = 100, .out = 50}, 8);
  const double limit = std::sqrt(6.0 / 150);  // 0.2
  const Moments m = moments(w);
  CHECK(m.least >= -limit);
  CHECK(m.largest < limit);
  CHECK(m.least < -0.999 * limit);
  CHECK(m.largest > 0.999 * limit);
  CHECK(m.mean == Approx(0).margin(5 * limit / std::sqrt(3.0 * 100000)));
  CHECK(m.variance == Approx(2.0 / 150).epsilon(5 * std::sqrt(0.8 / 100000)));  // squares have the variance 4/45 l^4
}

TEST_CASE("He's normal numbers have variance 2 / fan-in, and can be drawn in slices") {
  std::vector<double> w(100000);
  fill_he_normal(w, {.in = 50, .out = 3}, 8);
  const Moments m = moments(w);
  CHECK(m.mean == Approx(0).margin(5 * 0.2 / std::sqrt(100000.0)));
  CHECK(m.variance == Approx(0.04).epsilon(5 * std::sqrt(2.0 / 100000)));
  std::vector<double> slice(100);
  fill_he_normal(slice, {.in = 50, .out = 3}, 8, 777);
  CHECK(std::equal(slice.begin(), slice.end(), w.begin() + 777));
}

TEST_CASE("an orthogonal matrix has orthonormal rows, or orthonormal columns if there are fewer columns") {
  for (const auto& [rows, columns] : {std::pair{128, 512}, {512, 128}, {40, 40}, {1, 5}, {5, 1}, {1, 1}}) {
    CAPTURE(rows, columns);
    std::vector<double> w(static_cast<std::size_t>(rows * columns));
    fill_orthogonal(w, rows, columns, 4);
    const bool wide = rows <= columns;
    const auto count = static_cast<std::size_t>(std::min(rows, columns));
    const auto length = static_cast<std::size_t>(std::max(rows, columns));
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double p = wide ? product(w, i, j, length, 1, length) : product(w, i, j, 1, count, length);
        worst = test::larger(worst, std::abs(p - (i == j ? 1 : 0)));
      }
    }
    // Each dot product has `length` terms, whose absolute values sum to at most 1. The rounding of the vectors adds an
    // error of the same size.
    CHECK(worst < 4 * static_cast<double>(length + 8) * 0x1p-53);
  }
}

TEST_CASE("an orthogonal matrix is a function of its key, and favours no direction") {
  std::vector<double> a(8 * 32), b(8 * 32);
  fill_orthogonal(a, 8, 32, 1);
  fill_orthogonal(b, 8, 32, 1);
  CHECK(a == b);
  fill_orthogonal(b, 8, 32, 2);
  CHECK(a != b);
  // Over many keys every element has mean 0 and variance 1 / columns.
  constexpr int keys = 2000;
  double first = 0, first_square = 0, last = 0, last_square = 0;
  for (std::uint64_t key = 0; key < keys; ++key) {
    fill_orthogonal(a, 8, 32, key);
    first += a.front() / keys, first_square += a.front() * a.front() / keys;
    last += a.back() / keys, last_square += a.back() * a.back() / keys;
  }
  const double margin = 5 / std::sqrt(32.0 * keys);
  CHECK(first == Approx(0).margin(margin));
  CHECK(last == Approx(0).margin(margin));
  CHECK(first_square == Approx(1.0 / 32).epsilon(5 * std::sqrt(2.0 / keys)));
  CHECK(last_square == Approx(1.0 / 32).epsilon(5 * std::sqrt(2.0 / keys)));
}

TEST_CASE("the forget gate's bias is the second quarter of an LSTM's bias") {
  std::vector<double> bias(12, 7);
  fill_unit_forget_bias(bias);
  CHECK(bias == std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("an initialiser given by name draws the same numbers as its function") {
  const Shape shape{6, 2, 3, 1};
  const Fans fans = conv_fans(shape);
  std::vector<double> by_name(36), by_hand(36);
  const auto named = [&](std::string_view name) {
    initialise(by_name, name, shape, fans, 5);
    return by_name;
  };
  fill_glorot_uniform(by_hand, fans, 5);
  CHECK(named("glorot_uniform") == by_hand);
  fill_he_normal(by_hand, fans, 5);
  CHECK(named("he_normal") == by_hand);
  fill_orthogonal(by_hand, 6, 6, 5);
  CHECK(named("orthogonal") == by_hand);
  fill_uniform_between(by_hand, -0.05, 0.05, 5);
  CHECK(named("uniform") == by_hand);
  fill_unit_forget_bias(by_hand);
  CHECK(named("unit_forget_bias") == by_hand);
  CHECK(named("zeros") == std::vector<double>(36, 0));
  CHECK(named("ones") == std::vector<double>(36, 1));
  CHECK(named("layer_scale") == std::vector<double>(36, 1e-6));
  CHECK(named("prelu") == std::vector<double>(36, 0.25));
  for (const std::string& name : initialiser_names()) CHECK_NOTHROW(named(name));
  CHECK(initialiser_names().size() == 9);
}

TEST_CASE("initialisers refuse unknown names and shapes that do not fit") {
  std::vector<double> w(6);
  CHECK_THROWS_WITH(initialise(w, "glorot_unifrom", {6, 1, 1, 1}, {}, 1), ContainsSubstring("\"glorot_uniform\""));
  CHECK_THROWS_AS(initialise(w, "nothing", {6, 1, 1, 1}, {}, 1), UsageError);
  CHECK_THROWS_AS(initialise(w, "zeros", {5, 1, 1, 1}, {}, 1), UsageError);
  CHECK_THROWS_AS(fill_orthogonal(w, 4, 2, 1), UsageError);
  CHECK_THROWS_AS(fill_orthogonal(w, 0, 6, 1), UsageError);
  CHECK_THROWS_AS(fill_orthogonal(w, 4, 1, 1), UsageError);
  CHECK_THROWS_AS(fill_unit_forget_bias(w), UsageError);
  CHECK_THROWS_AS(fill_uniform_between(w, 1, 1, 1), UsageError);
  CHECK_THROWS_AS(fill_uniform_between(w, 0, INFINITY, 1), UsageError);
}
