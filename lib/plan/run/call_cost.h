#pragma once
// What a call of a plan costs at least.

#include <vector>

#include "../decisions/units.h"

namespace lamina::planner {

/// As Call::cost has it, of one call that covers `passes`. `wanted`: whether the gradient of a value is; `dx_shared`,
/// per x of the unit: its gradient is dy and is not moved.
Cost call_cost(const Unit&, const std::vector<Pass>& passes, const Nodes&, const EachNode<bool>& wanted,
               const std::vector<bool>& dx_shared);

}  // namespace lamina::planner
