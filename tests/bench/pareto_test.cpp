// Which offers are worth having, on points made up so that the answer can be seen.

#include "tasks/pareto.h"

#include <limits>

#include "support/catch.h"

using namespace lamina::bench;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Offer offer(double milliseconds, std::size_t workspace, double error, double spread = 0.01) {
  return {{milliseconds - spread, milliseconds, milliseconds + spread}, workspace, error};
}

}  // namespace

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
