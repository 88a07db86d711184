#pragma once
// What can be said of networks without running them: their layers, and the memory they would take.

#include <string>

#include "measure/workshop.h"

namespace lamina::bench {

/// The networks there are: what each was made for, the smallest image it takes, and where it is from.
std::string list_networks(Format);

/// Layers of each network with output, parameters, multiply-adds and bytes per image, and the totals.
/// Throws UsageError for an unknown network.
std::string describe(const DescribeOptions&);

/// Memory that training and inference take, by kind, and the largest batch that fits under the memory limit.
std::string describe_memory(Workshop&, const MemoryOptions&);

}  // namespace lamina::bench
