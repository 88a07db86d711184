#pragma once
// Convolutions in bf16 by Winograd's algorithms, without copies.

#include "lib/backends/eigen/runtime/common.h"
#include "lib/backends/half/half.h"

namespace lamina::eigen {

/// Whether all values of the unit are of bf16.
bool is_of_bf16(const Spec&);

/// As lower_halves(). Of a convolution in bf16 Winograd's algorithms need no copies, and run in one go, with any
/// instruction set.
Lowered lower_with_bf16_winograd(const Spec&, const Choice&, HalfUnits&, const Context&);

}  // namespace lamina::eigen
