// Random ops with random numbers on random shapes, through the suite.

#include "tests/support/cases/random_case.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

bool adds_and_multiplies_only(const Op& op) {
  return std::holds_alternative<Conv>(op) || std::holds_alternative<ConvTranspose>(op) ||
         std::holds_alternative<MaxPool>(op) || std::holds_alternative<Add>(op) ||
         std::holds_alternative<FullyConnected>(op) || std::holds_alternative<Concat>(op) ||
         std::holds_alternative<Slice>(op) || std::holds_alternative<Binary>(op) ||
         std::holds_alternative<Reorder>(op) || std::holds_alternative<Pad>(op) ||
         std::holds_alternative<ScaleShift>(op);
}

}  // namespace

TEST_CASE("random ops agree with the oracle", "[random]") {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t key = seed() * 1000 + i;
    INFO("LAMINA_TEST_SEED=" << seed() << ", case " << key);
    Case c = random_case(key);
    CHECK(check_against_oracle(c, key));
    if (adds_and_multiplies_only(c.op)) check_integers(c, key);
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
