#pragma once
// y = scale x + shift, with numbers for each channel or one pair for all, and the gradients of the numbers. PReLU is
// x where x is above 0, else scale x.

#include <cstddef>
#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Element i of an image is computed with scale[i / run] and shift[i / run]. A null shift is 0.
template <class T>
struct ScaleAndShift {
  const T *scale, *shift;
  std::int64_t run;
};

/// y, or y += with `adds`; y may alias x.
template <class T>
void scale_shift(Stream, const ScaleAndShift<T> &, View<const T> x, View<T> y, bool adds);

/// y = v where x is above 0, else scale v. Forward passes x as v, backward dy. With `adds`, this is added to y. y may
/// alias x and v.
template <class T>
void prelu(Stream, const ScaleAndShift<T> &, View<const T> x, View<const T> v, View<T> y, bool adds);

/// dscale = the sum of dy x and dshift = the sum of dy, over each channel or over all; += with `adds`. With a null
/// dshift, dscale is that of PReLU. `partial` has channel_sums_bytes().
template <class T>
void scale_shift_gradient(Stream, View<const T> x, View<const T> dy, T *dscale, T *dshift, bool by_channel, bool adds,
                          void *partial);

}  // namespace lamina::LAMINA_CUDA_SPACE
