#pragma once
// The mean of -log of the probability that a sigmoid gives each label, the share of right decisions, and the gradient
// of the mean.

#include "loss.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The most partial sums that forward needs as workspace.
std::int64_t sigmoid_cross_entropy_partials(int images, std::int64_t image);

/// y = {loss, accuracy}, and 1 / decisions if `inverse_count` is not null. Probabilities are limited to [clip, 1 -
/// clip].
template <class T>
void sigmoid_cross_entropy_forward(Stream, View<const T> logits, View<const T> labels, View<T> y, double clip,
                                   T* inverse_count, LossPartial* partials);

/// dx = dy[0] (p - label) / decisions, or dx += with `adds`.
template <class T>
void sigmoid_cross_entropy_backward(Stream, View<const T> logits, View<const T> labels, View<const T> dy, double clip,
                                    const T* inverse_count, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
