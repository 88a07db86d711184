#pragma once
// Examples worked out by hand: numbers in, numbers out, in literals.

#include "support/cases/unit.h"

namespace lamina::test {

/// Runs the case on the backend under test in every element type and by every algorithm and compares every tensor of
/// `want` that is not empty. Allowed are 16 epsilon of the largest number in the tensor: examples have short sums.
/// Old gradients are not added to; dy may be left out where no gradient is wanted.
void check_example(const Case&, const Feed&, const Result& want);

}  // namespace lamina::test
