#pragma once
// Functions of one element, applied to rows: for the ops ReLU and Pointwise, and for ops that they follow in one unit.

#include <memory>

#include "lib/backends/eigen/micro_kernels/epilogue.h"
#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {

/// The function of a ReLU or a Pointwise; null for another op.
template <class T>
std::shared_ptr<const Activation<T>> activation(const Op& op, const InstructionSet& set);

}  // namespace lamina::eigen
