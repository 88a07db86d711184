#pragma once
// Layer normalisation over the channels of every pixel.

#include <cstddef>
#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Statistics of a pixel, in the type that kernels compute in.
template <class T>
struct PixelStatistics {
  Computed<T> mean, inverse_deviation;
};

/// Scale and shift have a number for each channel; a null scale is 1, a null shift 0. Writes the statistics of every
/// pixel, image by image, to `saved`, unless that is null. y may alias x.
template <class T>
void layer_norm_forward(Stream, View<const T> x, const Computed<T>* scale, const Computed<T>* shift, double epsilon,
                        PixelStatistics<T>* saved, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void layer_norm_backward(Stream, View<const T> x, View<const T> dy, const Computed<T>* scale,
                         const PixelStatistics<T>* saved, View<T> dx, bool adds);

/// dscale and dshift, or += with `adds`. `partial` has channel_sums_bytes().
template <class T>
void layer_norm_gradient(Stream, View<const T> x, View<const T> dy, const PixelStatistics<T>* saved,
                         Computed<T>* dscale, Computed<T>* dshift, bool adds, void* partial);

}  // namespace lamina::LAMINA_CUDA_SPACE
