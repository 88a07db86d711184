#pragma once
// The backend "eigen": every op on the host, on its own threads. It computes in f64 or f32; values of f16 and bf16 are
// computed in f32. Tensors are nchw, dense or pitched.

#include <memory>

#include "lamina/backend.h"

namespace lamina::eigen {

/// Throws UsageError for a bad number of threads, for a device other than 0 and for an instruction set that this build
/// lacks; Unsupported for a set that this processor lacks. Starts no thread: the first kernel does.
std::unique_ptr<Backend> make_backend(const BackendOptions&);

}  // namespace lamina::eigen
