#pragma once
// Shapes of launches: as text, and whether a GPU would take them.

#include <string>

#include "grid.h"

namespace lamina::cuda_host::host {

std::string text_of(const dim3&);
std::string text_of(const uint3&);

/// Throws LaunchError for a grid, a block or a size of dynamic shared memory that no GPU takes.
void check_shape(const Launch&);

}  // namespace lamina::cuda_host::host
