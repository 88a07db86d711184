#pragma once
// Which engines cuDNN would choose for the convolutions of networks, on a device that need not be present.

#include <string>
#include <vector>

#include "engine_views.h"

namespace lamina::bench {

/// The first engine of a list that is strict: the one that a program takes if it keeps only those, as PyTorch without
/// TF32. Null if there is none.
const CudnnEngine* first_strict(const std::vector<CudnnEngine>&);

/// A list in short: engines in order of their first configuration, each with the letters of its notes: "67t 46t 70
/// 25n". A bar comes before those of the fallback list. `most` in all, then "..".
std::string ranking(const std::vector<CudnnEngine>&, std::size_t most);

/// Tables of all networks, batches and layouts that the options name, as text or CSV, or the JSON, as the options say;
/// writes the JSON to their file. Throws UsageError, LoadError, DeviceError, FileError.
std::string cudnn_engines(const EnginesOptions&);

}  // namespace lamina::bench
