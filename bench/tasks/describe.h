#pragma once
// The facts of networks that need no timing: layers, algorithms, the memory they would take, and whether their
// gradients are right.

#include <string>

#include "bench/measure/session.h"
#include "lamina/gradient_check.h"

namespace lamina::bench {

using DescribeOptions = TaskOptions;

struct MemoryOptions : TaskOptions {
  std::string optimiser{};  ///< optimiser (named_optimiser) whose state training has; empty: none
};

std::string image_text(const Shape&);  ///< shape of one image: "64x7x7"
std::string geometry(const Op&);       ///< text between the parentheses of "conv(64, 7x7, stride 2x2)"

/// The known networks: the image that each was made for, the smallest image that it takes, and its source.
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

struct CheckOptions : TaskOptions {
  GradientCheck how{.coordinates = 4, .directions = 2};
};

/// Prints the wrong gradients of each network, or layer, on each backend, and the verdict. Networks have the
/// parameters of their file, or drawn ones. The exit status is 1 if a gradient is wrong, or a backend does not support
/// a network.
int check_networks(Session&, const CheckOptions&, const Print&);

}  // namespace lamina::bench
