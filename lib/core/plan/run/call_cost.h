#pragma once
// The least cost of a call of a plan.

#include <vector>

#include "lib/core/plan/decisions/units.h"

namespace lamina::planner {

/// Call::cost of one call that covers `passes`. `units` says what is known of each value. `dx_shared`, per x of the
/// unit: whether its gradient is dy and is not copied.
Cost call_cost(const Unit&, const std::vector<Pass>& passes, const Nodes&, const Units& units,
               const std::vector<bool>& dx_shared);

}  // namespace lamina::planner
