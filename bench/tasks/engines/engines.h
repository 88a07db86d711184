#pragma once
// The engines that cuDNN's graphs have for the units of networks, and plans of them, on a device that may be absent.

#include <map>
#include <string>
#include <vector>

#include "bench/options/settings.h"

namespace lamina::bench {

/// Properties of known devices by name, as JSON, in the form of cuDNN's device-property descriptor.
const std::map<std::string, std::string>& device_sets();

/// Which plans are built. `none`: no plan. `first`: for each graph the proposals in order, until one finalises. `all`:
/// every proposal of a precompiled engine, and the first three of engines that are compiled at run time.
enum class BuildPlans : std::uint8_t { none, first, all };

struct EnginesOptions : TaskOptions {
  std::string device{};               ///< known set of properties, or a file
  std::vector<std::string> layers{};  ///< layers whose units are asked about; empty: all
  BuildPlans build = BuildPlans::none;
};

/// Tables of all networks, batches and layouts that the options name or, with two directories of cuDNN, what changed
/// from one to the other; writes the JSON to their file. Asks in processes of their own, made by fork: call it before
/// there are threads. Throws UsageError, FileError, and Error where cuDNN gave no answer.
std::string cudnn_engines(const EnginesOptions&);

}  // namespace lamina::bench
