#pragma once
// What a call of a plan costs at least.

#include <vector>

#include "units.h"

namespace lamina::planner {

/// As Call::cost has it, of one call that covers `passes`. `wanted`, by node: whether its gradient is; `dx_shared`, per
/// x of the unit: its gradient is dy and is not moved.
Cost call_cost(const Unit&, const std::vector<Pass>& passes, const std::vector<Node>& nodes,
               const std::vector<bool>& wanted, const std::vector<bool>& dx_shared);

}  // namespace lamina::planner
