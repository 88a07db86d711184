#pragma once
// Which algorithm each unit is asked for: Options::choice for all, Options::choice_of by name.

#include "units.h"

namespace lamina::planner {

/// Sets Unit::choice. Throws UsageError for an algorithm in Options::choice that no unit knows, with the known ones.
void set_choices(Units&, const std::vector<Node>& nodes, const Backend&, const Options&);

}  // namespace lamina::planner
