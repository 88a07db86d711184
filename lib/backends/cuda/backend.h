#pragma once
// The backends "cuda" and "cuda-host": every op by the kernels of kernels/, on dense or pitched nchw tensors. They
// compute in f32 or f64; values of f16 and bf16 are computed in f32. This header is for make_backend.cpp: the class
// itself is compiled once per machine.

#include <memory>

#include "lamina/backend.h"

namespace lamina::cuda {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
namespace lamina::cuda_host {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
