#pragma once
// The mean of -log softmax(logits)[label] over all rows (pixels), the share of rows whose largest logit is the label,
// and the gradient of the mean.

#include "loss.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// What backward needs: 1 / rows and, per row, the largest logit and a factor, with p = exp(logit - largest) * factor.
/// The factor is 0 where the gradient is 0, and NaN where the label is invalid.
template <class T>
struct SoftmaxRows {
  T *inverse_count = nullptr, *largest = nullptr, *factor = nullptr;

  SoftmaxRows() = default;
  SoftmaxRows(void* saved, std::int64_t rows)
      : inverse_count(static_cast<T*>(saved)), largest(inverse_count + 1), factor(largest + rows) {}
  static std::size_t bytes(std::int64_t rows) { return static_cast<std::size_t>(1 + 2 * rows) * sizeof(T); }
};

/// The number of partial sums that forward needs as workspace.
std::int64_t softmax_cross_entropy_partials(int images, std::int64_t plane);

/// y = {loss, accuracy}. All of `rows` is null if nothing is to be kept. Probabilities are limited to [clip, 1 - clip].
template <class T>
void softmax_cross_entropy_forward(Stream, View<const T> logits, View<const T> labels, View<T> y, double clip,
                                   SoftmaxRows<T> rows, LossPartial* partials);

/// dx = dy[0] (p - one-hot) / rows, or dx += with `adds`.
template <class T>
void softmax_cross_entropy_backward(Stream, View<const T> logits, View<const T> labels, View<const T> dy,
                                    SoftmaxRows<T> rows, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
