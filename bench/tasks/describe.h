#pragma once
// What can be said of networks without running them: layers, algorithms, and the memory they would take.

#include <filesystem>
#include <string>
#include <vector>

#include "bench/io/text.h"
#include "bench/measure/session.h"

namespace lamina::bench {

struct DescribeOptions : PlanningSettings {
  std::vector<std::string> networks{};
  Format format = Format::text;
};

struct MemoryOptions : PlanningSettings {
  std::vector<std::string> networks{};
  std::string optimiser{};  ///< of named_optimiser, whose state training has; empty: none
  Format format = Format::text;
  std::filesystem::path out{};  ///< of the predictions as JSON, with the memory over the plan's time; empty: none
};

std::string image_text(const Shape&);  ///< "64x7x7": without the images
std::string geometry(const Op&);       ///< what is between the parentheses of "conv(64, 7x7, stride 2x2)"

/// The networks there are: what each was made for, the smallest image it takes, and where it is from.
std::string list_networks(Format);

/// Layers of each network with output, parameters, multiply-adds and bytes per image, and the totals.
/// Throws UsageError for an unknown network.
std::string describe(const DescribeOptions&);

/// Which algorithm each backend takes for each layer and pass, and why: the only one, by rule,
/// named, or measured. Unless it measures, it touches no device. Throws UsageError, Unsupported.
std::string describe_algorithms(Session&, const DescribeOptions&);

/// Memory that training and inference take, or inference alone, by kind, and the largest batch that fits under the
/// memory limit. Writes the file of the options, if there is one. Throws UsageError for an unknown network or
/// optimiser.
std::string describe_memory(Session&, const MemoryOptions&);

}  // namespace lamina::bench
