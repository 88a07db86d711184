#pragma once
// The interface of the algorithm winograd_4x4 for the file that lowers convolutions.

#include <string>

#include "conv.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr const char* winograd_4x4_name = "winograd_4x4";

/// Why the algorithm cannot run the convolution, or empty.
std::string winograd_4x4_refusal(const ConvUnit&, Pass, Machine&);

/// Whether the models predict that it is faster than implicit_gemm: see docs/algorithms/winograd_4x4.md.
bool winograd_4x4_pays(const ConvUnit&, Pass, Machine&);

/// The step of any pass, and the filters that forward wants prepared in inference.
Lowered::Step winograd_4x4_step(const ConvUnit&, Pass, const Choice&, Machine&);
Prepared winograd_4x4_filters(const ConvUnit&, Machine&);

/// For backward_params alone.
bool winograd_4x4_weights_pay(const ConvUnit&);
Lowered::Step winograd_4x4_weights_step(const ConvUnit&, Machine&);

}  // namespace lamina::LAMINA_CUDA_SPACE
