#pragma once
// The subcommand `engines`: the engines that cuDNN's graphs have for the units of networks, and plans of these engines,
// for a device that may be absent.

#include <map>
#include <string>
#include <vector>

#include "bench/options/settings.h"

namespace lamina::bench {

/// Properties of known devices by name, as JSON, in the form of cuDNN's device-property descriptor.
const std::map<std::string, std::string>& device_sets();

/// The plans to build for each graph. `none`: no plan. `first`: tries the proposals in order, until one finalises.
/// `all`: every proposal of a precompiled engine, and the first three proposals of engines that are compiled at run
/// time.
enum class BuildPlans : std::uint8_t { none, first, all };

struct EnginesOptions : TaskOptions {
  std::string device{};               ///< known set of properties, or a file
  std::vector<std::string> layers{};  ///< layers whose units are asked about; empty: all
  BuildPlans build = BuildPlans::none;
};

/// Tables for all networks, batches and layouts of the options. With several directories of cuDNN, the tables show the
/// changes from the first to each other directory. Writes the JSON file of the options. cuDNN is asked in child
/// processes, which are made by fork: call this function before there are threads. Throws UsageError, FileError, and
/// Error if cuDNN gives no answer.
std::string cudnn_engines(const EnginesOptions&);

}  // namespace lamina::bench
