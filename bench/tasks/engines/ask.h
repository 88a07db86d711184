#pragma once
// Questions to a cuDNN, in processes of their own.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graphs.h"

namespace lamina::bench {

/// What one version answered: version, directory, the numbers of plans and of those that were loaded and, for each
/// query in order, the engines: number, list ("a" or "fallback"), notes, knobs, workspace_bytes and, of an engine that
/// was to be built, its plan or why it is refused.
struct Version {
  nlohmann::ordered_json tf32;    ///< about all types
  nlohmann::ordered_json strict;  ///< about f32, asked with TF32 forbidden, without engines that use tensor cores all
                                  ///< the same
};

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws what
/// CudnnEngines does, and DeviceError where the library ended a process.
Version ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
