#pragma once
// The rate of multiply-adds that the processor's units reach: an upper bound for every kernel.

#include "instruction_set.h"
#include "lamina/shape.h"
#include "pool.h"

namespace lamina::eigen {

/// Operations per second of the set's sums in registers, on every thread of the pool; a multiply-add counts as two. The
/// best of several runs in a few milliseconds. It depends on the clock of this moment, which on some processors changes
/// by half within seconds. Throws Unsupported for a type that the backend lacks.
double peak_flops_per_second(ThreadPool&, const InstructionSet&, DType);

}  // namespace lamina::eigen
