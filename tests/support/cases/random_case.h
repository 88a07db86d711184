#pragma once
// Random single ops, for cases that nobody would write by hand.

#include <cstdint>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// One op with random numbers and a small random shape that it accepts, in training mode, no Dropout.
Case random_case(std::uint64_t seed);

}  // namespace lamina::test
