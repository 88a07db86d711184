#pragma once
// Which engines cuDNN would choose for the convolutions of networks, on a device that need not be present.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/options/settings.h"
#include "lamina/cudnn_engines.h"
#include "lamina/op.h"

namespace lamina::bench {

/// Properties of known devices by name, as JSON, in the form of cuDNN's device-property descriptor.
const std::map<std::string, std::string>& device_sets();

struct EnginesOptions : TaskOptions {
  std::string device{};  ///< a known set of properties, or a file
};

/// A convolution (its bias apart) that networks have, once for all of them.
struct Convolution {
  Conv conv;
  Shape x;
  Layout layout = Layout::nchw;
  std::vector<nlohmann::ordered_json> uses{};  ///< of each network: its name, its first layer, the number of its layers
};

/// The convolutions of the networks, at all batches and layouts of the options, each once.
std::vector<Convolution> distinct_convolutions(const EnginesOptions&);

/// What the two processes answered: version and directory of the cuDNN, and by convolution and pass the engines in
/// order: number, list ("a" or "fallback"), notes, knobs, workspace_bytes.
struct EngineViews {
  nlohmann::ordered_json tf32;
  nlohmann::ordered_json
      strict;  ///< asked with TF32 forbidden; engines that use tensor cores all the same are left out
};

/// Asks in two child processes at once, made by fork: call it before there are threads. Throws what CudnnEngines does,
/// and DeviceError where the library ended the child.
EngineViews ask_for_engines(const std::string& directory, const std::string& device, const std::vector<Convolution>&);

/// Tables of all networks, batches and layouts that the options name; writes the JSON to their file. Throws UsageError,
/// LoadError, DeviceError, FileError.
std::string cudnn_engines(const EnginesOptions&);

}  // namespace lamina::bench
