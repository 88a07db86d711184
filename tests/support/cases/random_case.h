#pragma once
// Random single ops, including combinations that no author would write by hand.

#include <cstdint>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// An op with random numbers and a small random shape that it accepts, in training mode. Dropout is left out.
Case random_case(std::uint64_t seed);

}  // namespace lamina::test
