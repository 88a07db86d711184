// Which offers are worth having, on points made up so that the answer can be seen.

#include "tasks/pareto.h"

#include <cmath>
#include <limits>

#include "support/catch.h"

using namespace lamina::bench;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Offer offer(double milliseconds, std::size_t workspace, double error, double spread = 0.01) {
  return {{milliseconds - spread, milliseconds, milliseconds + spread}, workspace, error};
}

}  // namespace

TEST_CASE("an interval holds the median with 95 %, and is all there is below six samples") {
  const auto check = [](std::vector<double> samples, double low, double middle, double high) {
    const Interval interval = median_interval(std::move(samples));
    CHECK(interval.low == low);
    CHECK(interval.middle == middle);
    CHECK(interval.high == high);
  };
  check({5}, 5, 5, 5);
  check({9, 1, 5}, 1, 5, 9);
  check({4, 1, 2, 3, 9}, 1, 3, 9);
  check({6, 5, 4, 3, 2, 1}, 1, 3.5, 6);         // outside with 2/64
  check({1, 2, 3, 4, 5, 6, 7, 8}, 1, 4.5, 8);   // the second from either end: 18/256, too much
  check({9, 8, 7, 6, 5, 4, 3, 2, 1}, 2, 5, 8);  // 20/512
  check({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 6.5, 10);
}

TEST_CASE("an interval leaves the median out as seldom as it says") {
  for (std::size_t n = 6; n <= 40; ++n) {
    std::vector<double> samples(n);
    for (std::size_t i = 0; i < n; ++i) samples[i] = static_cast<double>(i);
    const Interval interval = median_interval(samples);
    const auto outside = [n](double low) {  // that the median lies below sample `low` or above its mirror image
      double probability = 0, ways = 1;
      for (std::size_t k = 0; static_cast<double>(k) <= low; ++k) {
        probability += 2 * ways / std::pow(2.0, static_cast<double>(n));
        ways = ways * static_cast<double>(n - k) / static_cast<double>(k + 1);
      }
      return probability;
    };
    CAPTURE(n, interval.low);
    CHECK(interval.low + interval.high == static_cast<double>(n - 1));
    CHECK(outside(interval.low) <= 0.05);
    CHECK(outside(interval.low + 1) > 0.05);
  }
}

TEST_CASE("an offer stays when it is best in time, in workspace or in error, or between") {
  const std::vector<Offer> offers = {
      offer(10, 1000, 1e-6),  // the fastest
      offer(20, 0, 1e-6),     // needs nothing
      offer(90, 0, 1e-9),     // the most exact
      offer(15, 500, 1e-6),   // between
      offer(25, 0, 1e-6),     // slower than the second, in nothing better
      offer(12, 2000, 1e-5),  // worse than the first in all
      offer(91, 10, 1e-9),    // worse than the third
  };
  CHECK(not_beaten(offers) == std::vector<bool>{true, true, true, true, false, false, false});
}

TEST_CASE("offers tied in time are judged by the rest, and equal ones all stay") {
  // Second: tied with the first, and needs less. Third: equal to the second within noise. Fourth: clearly slower.
  const std::vector<Offer> offers = {offer(10, 100, 1e-6, 1), offer(11, 50, 1e-6, 1), offer(10.5, 50, 1e-6, 1),
                                     offer(14, 50, 1e-6, 1)};
  CHECK(not_beaten(offers) == std::vector<bool>{false, true, true, false});
  CHECK(fastest(offers, {}) == std::size_t{0});
  CHECK(tied_with(offers, {}, 0) == std::vector<std::size_t>{1, 2});
  CHECK(tied_with(offers, {}, 3).empty());
  CHECK(not_beaten({}).empty());
}

TEST_CASE("determinism is worth something too") {
  std::vector<Offer> offers = {offer(10, 0, 1e-6), offer(20, 0, 1e-6)};
  CHECK(not_beaten(offers) == std::vector<bool>{true, false});
  offers[0].deterministic = false;
  CHECK(not_beaten(offers) == std::vector<bool>{true, true});
  CHECK(fastest(offers, {}) == std::size_t{0});
  CHECK(fastest(offers, {.deterministic = true}) == std::size_t{1});
}

TEST_CASE("the fastest is taken among those within every limit") {
  const std::vector<Offer> offers = {offer(10, 1000, 1e-3), offer(20, 100, 1e-5), offer(30, 0, 1e-8),
                                     offer(5, 0, infinite)};
  CHECK(fastest(offers, {}) == std::size_t{3});
  CHECK(fastest(offers, {.max_error = 1e-2}) == std::size_t{0});
  CHECK(fastest(offers, {.workspace_bytes = 999, .max_error = 1e-2}) == std::size_t{1});
  CHECK(fastest(offers, {.workspace_bytes = 1000, .max_error = 1e-3}) == std::size_t{0});
  CHECK(fastest(offers, {.max_error = 1e-6}) == std::size_t{2});
  CHECK_FALSE(fastest(offers, {.max_error = 1e-9}).has_value());
  CHECK_FALSE(fastest({}, {}).has_value());
  // What lies beyond a limit is no tie.
  CHECK(tied_with({offer(10, 10, 0, 1), offer(10, 20, 0, 1)}, {.workspace_bytes = 10}, 0).empty());
}
