#pragma once
// Questions to a cuDNN, in processes of their own.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graphs.h"

namespace lamina::bench {

/// The answers of one version: version, directory, the numbers of plans and of loaded plans and, for each query in
/// order, the engines: number, list ("a" or "fallback"), notes, knobs, workspace_bytes and, for an engine that was to
/// be built, its plan or why it is refused.
struct Version {
  nlohmann::ordered_json tf32;    ///< answers about all types
  nlohmann::ordered_json strict;  ///< answers about f32 with TF32 forbidden, without engines that use tensor cores even
                                  ///< so
};

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws what
/// CudnnEngines does, and DeviceError where the library ended a process.
Version ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
