#pragma once
// Names for messages, as text; and whether a GPU accepts the shape of a launch.

#include <string>

#include "grid.h"

namespace lamina::cuda_host::host {

std::string text_of(const dim3&);
std::string text_of(const uint3&);
std::string text_of(const char* file, int line);  ///< without the file's folder
const char* name_of(WarpPrimitive);

/// Throws LaunchError for a grid, a block or a size of dynamic shared memory that no GPU accepts.
void check_shape(const Launch&);

}  // namespace lamina::cuda_host::host
