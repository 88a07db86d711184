#pragma once
// Batch normalisation, optionally followed by an addition and a function; group normalisation.

#include <cstddef>
#include <cstdint>

#include "kernels/pointwise.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Values per channel that the passes share: y = (x - centre) * factor + shift. They come from the batch or, in
/// inference, from the running statistics. `centre` is the mean, in the type that kernels compute in.
template <class T>
struct NormChannel {
  double mean, inverse_deviation;
  Computed<T> centre, factor, shift;
};

/// Parameters and running statistics, one number per channel.
template <class T>
struct NormNumbers {
  const Computed<T>* scale;
  const Computed<T>* shift;
  Computed<T>* running_mean;
  Computed<T>* running_variance;
  double epsilon, momentum;
};

/// Bytes that batch_norm_backward needs for channels of `count` values. group_norm_backward needs
/// batch_norm_backward_bytes(images * channels, pixels of a plane). batch_norm_statistics needs channel_sums_bytes().
template <class T>
std::size_t batch_norm_backward_bytes(int channels, std::int64_t count);

/// Training: computes `channels` from the batch, and updates the running statistics. The update of the running variance
/// uses the unbiased variance of the batch.
template <class T>
void batch_norm_statistics(Stream, View<const T> x, const NormNumbers<T>&, NormChannel<T>* channels, void* workspace);

/// Inference: computes the `count` entries of `channels` from the running statistics. It does not change these.
template <class T>
void batch_norm_from_running(Stream, int count, const NormNumbers<T>&, NormChannel<T>* channels);

/// y = f(normalised x + other), with the given function as f. A null `other` is left out. y may alias x or other.
template <class T>
void batch_norm_apply(Stream, View<const T> x, View<const T> other, const PointwiseFunction&,
                      const NormChannel<T>* channels, View<T> y);

/// The gradient of the normalised value. `none`: dy. `from_y`: dy where y > 0, else 0. `from_x`: the same, but y is
/// recomputed from x and not read. `function`: dy times the slope of a function at the recomputed normalised value.
enum class NormMask : std::uint8_t { none, from_y, from_x, function };

/// Gradients. Null data: not wanted. `dx` or `dother` may alias dy.
template <class T>
struct NormGradients {
  View<T> dx, dother;
  bool adds_dx, adds_dother;
  Computed<T>* dscale;
  Computed<T>* dshift;
  bool adds_dw;
};

/// `y` is read only with NormMask::from_y, and the function is used only with NormMask::function. All sums have a fixed
/// order of images, channels and pixels.
template <class T>
void batch_norm_backward(Stream, NormMask, const PointwiseFunction&, View<const T> x, View<const T> y, View<const T> dy,
                         const NormChannel<T>* channels, const Computed<T>* scale, const NormGradients<T>&,
                         void* workspace);

/// Group normalisation: a batch norm whose channels are the groups of each image. Scale and shift have a number for
/// each channel. A null scale is 1, and a null shift is 0.
template <class T>
struct GroupNumbers {
  const Computed<T>* scale;
  const Computed<T>* shift;
  double epsilon;
  int groups;
};

/// Writes the statistics of each group of each image to `saved`, unless that is null. y may alias x.
template <class T>
void group_norm_forward(Stream, View<const T> x, const GroupNumbers<T>&, NormChannel<T>* saved, View<T> y,
                        void* workspace);

/// Computes the gradients that are not null. dscale and dshift are both null, or neither is.
template <class T>
void group_norm_backward(Stream, View<const T> x, View<const T> dy, const GroupNumbers<T>&, const NormChannel<T>* saved,
                         const NormGradients<T>&, void* workspace);

/// Bytes of forward's workspace for a tensor of these extents.
template <class T>
std::size_t group_norm_forward_bytes(int images, int channels, std::int64_t plane, int groups);

}  // namespace lamina::LAMINA_CUDA_SPACE
