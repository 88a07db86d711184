#pragma once
// An optimiser's update as the numbers that a backend takes.

#include <cstdint>

#include "lamina/backend.h"
#include "lamina/optimiser.h"

namespace lamina::planner {

/// The rule and its factors. `number` is the number of the update, from 1.
Update update_of(const Optimiser&, double learning_rate, std::uint64_t number);

/// The rule of one update on the numbers of another.
Update placed(const Update& rule, const Update& row);

}  // namespace lamina::planner
