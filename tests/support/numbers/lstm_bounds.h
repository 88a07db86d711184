#pragma once
// An LSTM by its definition, in f64, with the error that each number may carry.

#include "tests/support/numbers/bounds.h"

namespace lamina::test {

/// The result by the formulas of the op, image by image and step by step.
Result lstm_by_definition(const Case&, const Feed&);

/// Bounds of one LSTM: a running error analysis of first order along the formulas, forward and backward. A sum of K
/// products errs by (K + 8) epsilon of the sum of |terms|, a function by 8 epsilon of its value; an error goes through
/// a function times its slope. All is doubled, for the terms of second order.
Bounds lstm_bounds(const Case&, const Feed&);

}  // namespace lamina::test
