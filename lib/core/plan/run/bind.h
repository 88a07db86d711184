#pragma once
// The calls of a plan: kernels with their tensors, in running order.

#include <memory>
#include <vector>

#include "lib/core/plan/decisions/layout.h"
#include "memory.h"

namespace lamina::planner {

struct BoundCall {
  std::shared_ptr<Kernel> kernel;  ///< kernel of the layout, or its bound form (Kernel::bind)
  Args args;
};

struct Calls {
  std::vector<BoundCall> bound;    ///< forward's calls, then backward's
  std::vector<Call> described;     ///< the same calls, as the caller sees them
  std::size_t forward = 0;         ///< number of calls that belong to forward
  std::vector<BoundCall> prepare;  ///< calls that run when parameters change, in inference
};

/// Call::cost of one call that covers `passes`. `units` has the properties of each value. `dx_shared`, per x of the
/// unit: whether its gradient is dy and is not copied.
Cost call_cost(const Unit&, const std::vector<Pass>& passes, const Nodes&, const Units& units,
               const std::vector<bool>& dx_shared);

Calls bind(const PlanLayout&, const Memory&, const Nodes&, Mode);

/// In optimiser.cpp: an optimiser's update as the factors that a backend takes, before corrected().
UpdateFactors update_factors(const Optimiser&, double learning_rate);

}  // namespace lamina::planner
