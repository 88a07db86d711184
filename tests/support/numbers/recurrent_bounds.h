#pragma once
// A recurrent op by its definition, in f64, with the error that each number may have.

#include "tests/support/numbers/bounds.h"

namespace lamina::test {

/// The result by the formulas of the op, image by image and step by step, and its bounds: a running error analysis of
/// first order along the formulas, forward and backward. A sum of K products has an error of (K + 8) epsilon of the sum
/// of |terms|, a function of 8 epsilon of its value. An error goes through a function multiplied by its slope. All
/// bounds are doubled, for the terms of second order.
struct Defined {
  Result result;
  Bounds bounds;
};
Defined recurrent_by_definition(const Case&, const Feed&);

}  // namespace lamina::test
