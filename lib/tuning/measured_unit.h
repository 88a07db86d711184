#pragma once
// The buffer that a unit is measured in: whether it is large enough, and numbers for the tensors.

#include <cstddef>
#include <string>

#include "lamina/backend.h"

namespace lamina {

/// Why a unit cannot be measured in that many bytes.
std::string lacks(std::size_t needed, std::size_t buffer);

/// Fills every tensor of the unit, gaps included: with normal numbers, and running variances with positive ones.
/// Zeros, old contents or what becomes NaN could take another time.
void draw_numbers(Device&, const Spec&, void* buffer);

}  // namespace lamina
