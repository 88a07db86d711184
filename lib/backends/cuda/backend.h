#pragma once
// The backends "cuda" and "cuda-host": every op by the kernels of kernels/, in f32 and f64, and in f32 on values of f16
// and bf16, on dense or pitched nchw tensors. This header is for make_backend.cpp: the class itself is compiled once
// per machine.

#include <memory>

#include "lamina/backend.h"

namespace lamina::cuda {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
namespace lamina::cuda_host {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
