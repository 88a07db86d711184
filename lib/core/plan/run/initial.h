#pragma once
// The initial numbers of a plan.

#include <cstdint>
#include <span>

#include "lamina/plan.h"

namespace lamina::planner {

/// Fills parameters and state, as Plan documents.
void fill_stored(const Plan&);

/// Whole numbers from 0 to count - 1, each equally likely; count is at most 2^32. Element i of `out` is a function of
/// key and first + i.
void fill_whole_numbers(std::span<double> out, std::int64_t count, std::uint64_t key, std::uint64_t first = 0);

}  // namespace lamina::planner
