// Runs cases of many ops through the suite: cases that reach every kernel, and random ops on random shapes.

#include "tests/support/cases/random_case.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

template <class... Ops>
bool is_any_of(const Op& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

}  // namespace

TEST_CASE("the cases that reach every kernel agree with the oracle") {
  for (const Case& c : kernel_cases()) check_against_oracle(c);
}

TEST_CASE("random ops agree with the oracle", "[random]") {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t key = seed() * 1000 + i;
    INFO("LAMINA_TEST_SEED=" << seed() << ", case " << key);
    Case c = random_case(key);
    CHECK(check_against_oracle(c, key));
    // ops that only add and multiply
    if (is_any_of<Conv, ConvTranspose, MaxPool, Add, FullyConnected, Concat, Slice, Binary, Reorder, Pad, ScaleShift>(
            c.op))
      check_integers(c, key);
    c.mode = Mode::inference;
    CHECK(check_against_oracle(c, key));
  }
}

TEST_CASE("random ops have the gradients of their differences", "[random]") {
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::uint64_t key = seed() * 1000 + 500 + i;
    INFO("LAMINA_TEST_SEED=" << seed() << ", case " << key);
    check_differences(random_case(key), {.coordinates = 16, .directions = 2, .step = 1e-4, .seed = key});
  }
}
