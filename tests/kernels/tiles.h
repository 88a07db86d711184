#pragma once
// Checks that several tests run: every tile of the products against the definition.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

void check_1x1_in_packs();
void check_1x1_singly();
void check_implicit_gemm_at_edges();
void check_implicit_gemm_by_taps();
void check_gemm_tiles();

}  // namespace lamina::LAMINA_CUDA_SPACE
