#pragma once
// Properties of devices as cuDNN's device-property descriptor takes them: known ones by name, others from a file.

#include <map>
#include <string>

namespace lamina::bench {

/// By name, as JSON.
const std::map<std::string, std::string>& device_sets();

/// What `--device` names: a known set, or a file. Throws UsageError: neither, or a file that cannot be read or holds no
/// JSON object; the message lists the known ones.
std::string device_properties(const std::string& name);

/// Keys of the known sets that these properties lack: "maxGridSize, warpSize"; nothing where they have all.
std::string missing_properties(const std::string& text);

}  // namespace lamina::bench
