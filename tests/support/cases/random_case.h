#pragma once
// Random single ops, including combinations that no author would write by hand.

#include <cstdint>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// A random op of one input, which may not accept this shape, and a random slice of a value of this shape.
Op random_op(Dice&, const Shape&);
Slice random_slice(Dice&, Shape);

/// An op with random numbers and a small random shape that it accepts, in training mode. Dropout is left out.
Case random_case(std::uint64_t seed);

}  // namespace lamina::test
