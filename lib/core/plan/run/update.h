#pragma once
// An optimiser's update as the factors that a backend takes.

#include "lamina/backend.h"
#include "lamina/optimiser.h"

namespace lamina::planner {

/// The rule and its factors, before corrected().
UpdateFactors update_factors(const Optimiser&, double learning_rate);

}  // namespace lamina::planner
