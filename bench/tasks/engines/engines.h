#pragma once
// Which engines cuDNN would choose for the convolutions of networks, on a device that need not be present.

#include <string>

#include "engine_views.h"

namespace lamina::bench {

/// Tables of all networks, batches and layouts that the options name; writes the JSON to their file. Throws UsageError,
/// LoadError, DeviceError, FileError.
std::string cudnn_engines(const EnginesOptions&);

}  // namespace lamina::bench
