#pragma once
// y = x * mask / (1 - rate), with a mask drawn from counters.

#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Takes the step of a training pass: now = next, next += 1.
void dropout_advance(Stream, std::uint64_t* next, std::uint64_t* now);

/// Element i of the batch in n, c, h, w order takes word i mod 4 of Philox(key, counter (i / 4, *step)). It is dropped
/// if the word is below `threshold`, and multiplied by `scale` otherwise.
struct DropoutMask {
  std::uint64_t key;
  std::uint64_t threshold;
  double scale;
};

/// to = from * mask, or to += from * mask with `adds`. It maps x to y and dy to dx. `to` may alias `from`.
template <class T>
void dropout_apply(Stream, const DropoutMask&, const std::uint64_t* step, View<const T> from, View<T> to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
