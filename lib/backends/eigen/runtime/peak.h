#pragma once
// The rate of multiply-adds that the processor's units reach: an upper bound for every kernel.

#include "instruction_set.h"
#include "lamina/shape.h"
#include "pool.h"

namespace lamina::eigen {

/// Operations per second that all threads of the pool reach with sums in registers; a multiply-add counts as two. The
/// best of several runs, within a few milliseconds. The rate depends on the clock of the moment, which changes by half
/// within seconds on some processors. Throws Unsupported for a type that the backend lacks.
double peak_flops_per_second(ThreadPool&, const InstructionSet&, DType);

}  // namespace lamina::eigen
