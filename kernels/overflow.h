#pragma once
// Dynamic scaling of the loss: its state, and how a step changes it.

#include <cstdint>

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The state on the device. Its layout and meaning are those of LossScale in lamina/backend.h.
struct LossScaleState {
  float scale, zero;
  double inverse;
  std::uint64_t updates;
  std::uint32_t good, skips;
};

struct LossScaleLimits {
  float least, most;
  std::uint32_t growth;
};

/// Moves on to the next state, depending on whether all elements of g are finite. g consists of whole packs of 16 bytes
/// at such an address.
void check_overflow(Stream, const float* g, std::int64_t count, LossScaleState*, LossScaleLimits);

}  // namespace lamina::LAMINA_CUDA_SPACE
