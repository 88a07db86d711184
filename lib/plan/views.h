#pragma once
// Concat and Slice without copies: which values and gradients lie inside others.

#include "units.h"

namespace lamina::planner {

/// Fills value_view and gradient_view. A value lies in at most one other; every unit that touches it takes a pitch.
void set_views(Units&, const std::vector<Node>& nodes, const Backend&, const Options&);

}  // namespace lamina::planner
