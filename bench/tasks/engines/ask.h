#pragma once
// Questions to a cuDNN, in processes of their own.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graphs.h"

namespace lamina::bench {

/// The answers of one version. For each query in order there is an object of lists: "engines" or, for f32, "tf32" and
/// "strict", which has TF32 forbidden and no engine that uses tensor cores even so. An engine has its number, list ("a"
/// or "fallback"), notes, knobs, workspace_bytes and, if it was to be built, its plan or why it is refused.
struct Version {
  std::string number, directory;
  int plans = 0, loaded = 0;
  std::vector<nlohmann::ordered_json> answers{};
};

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws what
/// CudnnEngines does, and DeviceError where the library ended a process.
Version ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
