#pragma once
// The backends "cuda" and "cuda-host": every op by the kernels of kernels/, and products by cuBLAS as well. They
// compute in f32 or f64; values of f16 and bf16 are computed in f32. Most kernels take nchw; values in nhwc then run on
// copies. This header is for make_backend.cpp. backend.cpp is compiled twice: once for the GPU, once for the host.

#include <memory>

#include "lamina/backend.h"

namespace lamina::cuda {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
namespace lamina::cuda_host {
std::unique_ptr<Backend> make_backend(const BackendOptions&);
}
