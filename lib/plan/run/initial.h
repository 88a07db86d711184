#pragma once
// The numbers a plan starts with.

#include "lamina/plan.h"

namespace lamina::planner {

/// Fills parameters, state, inputs and the output gradient as Plan documents.
void fill_initial(const Plan&);

}  // namespace lamina::planner
