#pragma once
// The cases that a table of networks is made of.

#include <string>
#include <vector>

#include "workshop.h"

namespace lamina::bench {

/// Every network, backend and batch that the options name, in this order; of types and layouts the first. Throws
/// UsageError for an unknown network.
std::vector<Case> cases(Workshop&);

/// "resnet50 on eigen, batch 16"
std::string to_string(const Case&);

}  // namespace lamina::bench
