// The cases that reach every kernel.

#include "tests/support/cases/kernel_cases.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

TEST_CASE("the cases that reach every kernel agree with the oracle") {
  for (const Case& c : kernel_cases()) check_against_oracle(c);
}
