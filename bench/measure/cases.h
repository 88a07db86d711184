#pragma once
// The cases that a table of networks is made of.

#include <string>
#include <vector>

#include "workshop.h"

namespace lamina::bench {

/// Each of the networks on every backend and at every batch of the settings, in this order; of types and layouts the
/// first. Throws UsageError for an unknown network.
std::vector<Case> cases(Workshop&, const std::vector<std::string>& networks);

/// "resnet50 on eigen, batch 16"
std::string to_string(const Case&);

}  // namespace lamina::bench
