#pragma once
// The devices of this machine: as a table with what they were measured to reach, and as facts for the context.

#include <string>

#include "context.h"

namespace lamina::bench {

/// Measures each device that is found, some seconds in all. Without a GPU, or where one cannot be measured, a line
/// below the table says why.
std::string device_table(Workshop&);

/// Properties only, and versions that are told without opening a library.
Facts device_facts();

}  // namespace lamina::bench
