#pragma once
// Facts of networks that need no timing: layers, algorithms, the memory that a network would need, and whether its
// gradients are right.

#include <string>

#include "bench/measure/session.h"
#include "lamina/gradient_check.h"

namespace lamina::bench {

using DescribeOptions = TaskOptions;

struct MemoryOptions : TaskOptions {
  std::string optimiser{};  ///< optimiser whose state counts in training, by its name in named_optimiser; empty: none
};

std::string image_text(const Shape&);  ///< the shape of one image: "64x7x7"
std::string geometry(const Op&);       ///< the text between the parentheses of "conv(64, 7x7, stride 2x2)"

/// A table of the networks of the zoo: published image size, smallest image size, channels, classes, protocol, source.
std::string list_networks(Format);

/// A table for each network: its layers with output, parameters, multiply-adds and bytes per image, and the totals.
/// Throws UsageError for an unknown network.
std::string describe(const DescribeOptions&);

/// A table for each network and backend: the algorithm of each layer and pass, and why it is chosen. Runs nothing on a
/// device unless the options ask to measure. Throws UsageError, Unsupported.
std::string describe_algorithms(Session&, const DescribeOptions&);

/// A table for each network: the memory that training and inference need, or only inference, by kind, and the largest
/// batch within the memory limit. Writes the file of the options, if there is one. Throws UsageError for an unknown
/// network or optimiser.
std::string describe_memory(Session&, const MemoryOptions&);

struct CheckOptions : TaskOptions {
  GradientCheck how{.coordinates = 4, .directions = 2};
};

/// Checks the gradients of each network or layer on each backend. Prints the wrong gradients and the verdict. The
/// parameters come from the network's file, or are random. The exit status is 1 if a gradient is wrong, or if a backend
/// does not support a network.
int check_networks(Session&, const CheckOptions&, const Print&);

}  // namespace lamina::bench
