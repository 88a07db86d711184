#pragma once
// The interface of the algorithm winograd_4x4 for the file that lowers convolutions.

#include <cstddef>
#include <string>

#include "conv_forward.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr const char* winograd_4x4_name = "winograd_4x4";

/// Why the algorithm cannot run this pass of the convolution, or empty.
std::string winograd_4x4_refusal(const Conv&, const Spec&);

/// Whether the models predict that it is faster than implicit_gemm: see docs/algorithms/winograd_4x4.md.
bool winograd_4x4_pays(const Conv&, const Spec&, Pass);

/// Any supported pass; prepare for a spec in inference mode only.
Lowered::Step winograd_4x4_step(const Conv&, const Spec&, Pass, Machine&);

/// The same two functions for backward_params alone.
bool winograd_4x4_weights_pay(const Conv&, const Spec&);
Lowered::Step winograd_4x4_weights_step(const Conv&, const Spec&, Machine&);

/// Bytes of forward's prepared form: 0 in training mode.
std::size_t winograd_4x4_prepared_bytes(const Conv&, const Spec&);

}  // namespace lamina::LAMINA_CUDA_SPACE
