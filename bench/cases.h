#pragma once
// The cases that a table of networks is made of.

#include <vector>

#include "workshop.h"

namespace lamina::bench {

/// Every network, backend and batch that the options name, in this order; of types and layouts the first. Throws
/// UsageError for an unknown network.
std::vector<Case> cases(Workshop&);

}  // namespace lamina::bench
