// Philox is compared with published test vectors, normal numbers with their definition and moments. Uniform numbers
// must be spread evenly.

#include "lamina/random.h"

#include <numbers>

#include "lib/core/numbers/philox_words.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

std::vector<double> normal(std::size_t count, std::uint64_t key, std::uint64_t first = 0) {
  std::vector<double> out(count);
  fill_normal(out, key, first);
  return out;
}

std::vector<double> uniform(std::size_t count, std::uint64_t key) {
  std::vector<double> out(count);
  fill_uniform(out, key);
  return out;
}

double moment(const std::vector<double>& values, int power) {
  double sum = 0;
  for (const double v : values) sum += std::pow(v, power);
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("philox gives the published words") {
  using Words = std::array<std::uint32_t, 4>;
  const std::uint64_t ones = ~std::uint64_t{0};
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(ones, ones, ones) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("words drawn by several counters at once equal words drawn one by one") {
  const std::uint64_t key = 0x0123456789ABCDEF, step = 0xFEDCBA9876543210;
  const std::uint64_t first = 0xFFFFFFFE;  // the low word of the counter overflows within the run
  std::array<std::uint32_t, 32> words{};
  philox_words<8>(key, first, step, words.data());
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(words[i] == philox(key, first + i / 4, step)[i % 4]);
}

TEST_CASE("normal numbers are Box-Muller pairs of philox words") {
  const std::uint64_t key = 42;
  const auto values = normal(4001, key);
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    const auto words = philox(key, i / 4, 0);
    const double radius = std::sqrt(-2 * std::log((words[i % 4] + 0.5) / 4294967296.0));
    const double angle = 2 * std::numbers::pi * (words[i % 4 + 1] / 4294967296.0);
    CHECK(std::abs(values[i] - radius * std::cos(angle)) < 1e-14);
    CHECK(std::abs(values[i + 1] - radius * std::sin(angle)) < 1e-14);
  }
}

TEST_CASE("a number depends only on its key and index") {
  const auto all = normal(1000, 7);
  for (const std::size_t count : {0, 1, 3, 127, 128, 129, 500})
    CHECK(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), normal(count, 7).begin()));
  for (const std::size_t first : {1, 2, 3, 4, 130, 511}) {
    const auto part = normal(300, 7, first);
    CHECK(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first)));
  }
  const auto some = uniform(1000, 7);
  CHECK(std::equal(some.begin(), some.begin() + 65, uniform(65, 7).begin()));
  CHECK(normal(8, 7) != normal(8, 8));
  CHECK(uniform(8, 7) != uniform(8, 8));
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  const auto values = normal(1 << 20, 3);
  // The tolerance is five standard errors. The standard error of the k-th moment is sqrt((E x^2k - (E x^k)^2) / count).
  const double error = 5 / std::sqrt(static_cast<double>(values.size()));
  CHECK(std::abs(moment(values, 1)) < error);
  CHECK(std::abs(moment(values, 2) - 1) < error * std::sqrt(2.0));
  CHECK(std::abs(moment(values, 3)) < error * std::sqrt(15.0));
  CHECK(std::abs(moment(values, 4) - 3) < error * std::sqrt(96.0));
  double neighbours = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) neighbours += values[i] * values[i + 1];
  CHECK(std::abs(neighbours / static_cast<double>(values.size())) < error);
}

TEST_CASE("uniform numbers are spread evenly between 0 and 1") {
  const auto values = uniform(1 << 20, 3);
  CHECK(*std::min_element(values.begin(), values.end()) >= 0);
  CHECK(*std::max_element(values.begin(), values.end()) < 1);
  std::array<int, 16> bins{};
  for (const double v : values) ++bins[static_cast<std::size_t>(v * 16)];
  const double expected = static_cast<double>(values.size()) / 16;
  for (const int bin : bins) CHECK(std::abs(bin - expected) < 5 * std::sqrt(expected));
}

TEST_CASE("no word makes a normal number infinite") {
  // The largest radius, from the smallest word.
  CHECK(std::sqrt(-2 * std::log(0.5 / 4294967296.0)) < 6.8);
  for (const double v : normal(1 << 16, 11)) REQUIRE(std::abs(v) < 6.8);
}
