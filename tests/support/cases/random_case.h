#pragma once
// Random single ops: what nobody would think of writing down.

#include <cstdint>

#include "support/cases/unit.h"

namespace lamina::test {

/// One op with random numbers and a small random shape that it accepts, in training mode, no Dropout.
Case random_case(std::uint64_t seed);

}  // namespace lamina::test
