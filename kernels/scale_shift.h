#pragma once
// y = scale x + shift by numbers of each channel, or by one pair for all.

#include <cstdint>

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Element i of an image takes the numbers i / run. A null shift is 0.
template <class T>
struct ScaleAndShift {
  const T *scale, *shift;
  std::int64_t run;
};

/// y, or y += with `adds`; y may alias x.
template <class T>
void scale_shift(Stream, const ScaleAndShift<T> &, View<const T> x, View<T> y, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
