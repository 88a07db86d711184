#pragma once
// The backend "eigen": every op on the host, in f32 and f64, and in f32 on values of f16 and bf16, on dense or pitched
// nchw tensors, by its own threads.

#include <memory>

#include "lamina/backend.h"

namespace lamina::eigen {

/// Throws UsageError for a bad number of threads, for a device other than 0 and for an instruction set that this build
/// lacks; Unsupported for one that this processor lacks. Starts no thread: the first kernel does.
std::unique_ptr<Backend> make_backend(const BackendOptions&);

}  // namespace lamina::eigen
