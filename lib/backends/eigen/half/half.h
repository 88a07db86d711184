#pragma once
// Units whose values are of half precision: computed in f32.

#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {

/// Whether any value of the unit is of f16 or bf16.
bool has_halves(const Spec&);

/// The unit as it is computed: its values dense, and in f32.
Spec in_f32(Spec);

/// Lowers a unit with halves by the kernels of f32 (lower_halves.cpp says how).
Lowered lower_halves(const Spec&, const Choice&, const Context&);

}  // namespace lamina::eigen
