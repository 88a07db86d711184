#pragma once
// An optimiser's update as the factors that a backend takes.

#include <cstdint>

#include "lamina/backend.h"
#include "lamina/optimiser.h"

namespace lamina::planner {

/// The rule and its factors. `number` is the number of the update, from 1.
UpdateFactors update_factors(const Optimiser&, double learning_rate, std::uint64_t number);

}  // namespace lamina::planner
