#pragma once
// The backend "cudnn": cuDNN computes the ops that it has, cuBLAS or our kernels the others; f64, f32, f16 and bf16,
// nchw and, in most ops, nhwc. The backend "cudnn-graph": the same, but it prefers engines of cuDNN's graphs.

#include <memory>
#include <string>

#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/session.h"

namespace lamina::cudnn {

/// `name` is "cudnn" or, with engines, "cudnn-graph"; a directory may follow after a colon. With engines, a unit holds
/// what one graph of cuDNN can hold, except in f64. Tests supply their own machine and library.
std::unique_ptr<Backend> make_backend(std::string name, std::unique_ptr<Machine>, Session::Open,
                                      std::unique_ptr<graph::UnitEngines> = nullptr);

/// The backend on the machine's GPU: "cudnn" or "cudnn-graph" with the system's cuDNN, or either name with
/// ":<directory>" of another cuDNN. Throws LoadError if this process has claimed a different cuDNN.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions&);

}  // namespace lamina::cudnn
