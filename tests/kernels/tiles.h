#pragma once
// Checks that compare every tile of the products with the definition. Several tests run them.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

void check_1x1_in_packs();
void check_1x1_singly();
void check_implicit_gemm_at_edges();
void check_implicit_gemm_by_taps();
void check_gemm_tiles();

}  // namespace lamina::LAMINA_CUDA_SPACE
