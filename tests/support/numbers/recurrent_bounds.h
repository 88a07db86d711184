#pragma once
// A recurrent op by its definition, in f64, with a bound on the error of each number.

#include "tests/support/numbers/bounds.h"

namespace lamina::test {

/// The result by the op's formulas, image by image and step by step, and its bounds. The bounds are a first-order
/// running error analysis along the formulas, forward and backward. A sum of K products has an error of (K + 8) epsilon
/// of the sum of |terms|. A function has an error of 8 epsilon of its value, and multiplies the error of its argument
/// by its slope. All bounds are doubled to cover second-order terms.
struct Defined {
  Result result;
  Bounds bounds;
};
Defined recurrent_by_definition(const Case&, const Feed&);

}  // namespace lamina::test
