#pragma once
// The backend "cudnn": every op by calls of cuDNN or, if it has none, of cuBLAS or our kernels, in f64, f32, f16 and
// bf16, in nchw and for most ops nhwc. The backend "cudnn-graph": the same, with engines of cuDNN's graphs first.

#include <memory>
#include <string>

#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/session.h"

namespace lamina::cudnn {

/// `name` is "cudnn" or "cudnn:<directory>". With engines it begins with "cudnn-graph", and units end where graphs end.
/// Tests supply their own machine and library.
std::unique_ptr<Backend> make_backend(std::string name, std::unique_ptr<Machine>, Session::Open,
                                      std::unique_ptr<graph::UnitEngines> = nullptr);

/// The backend on the machine's GPU: "cudnn", "cudnn-graph", or either with a colon and the directory of the cuDNN, by
/// default the system's. Throws LoadError if this process has claimed another one.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions&);

}  // namespace lamina::cudnn
