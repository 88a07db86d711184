#pragma once
// Cases on the backend under test: examples worked out by hand, with inputs and outputs as literals, and single runs.

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// Runs the case on the backend under test in every element type and by every algorithm and compares every tensor of
/// `want` that is not empty. The tolerance is 16 epsilon of the largest number in the tensor: examples have short sums.
/// Old gradients are not added to; dy may be omitted if no gradient is wanted.
void check_example(const Case&, const Feed&, const Result& want);

/// As run_unit(), for a case that the backend under test takes, by the algorithms that it picks.
Result run_case(const Case&, const Feed&, const Conditions& = {});

}  // namespace lamina::test
