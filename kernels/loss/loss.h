#pragma once
// The cross entropies of a softmax and a sigmoid: mean loss, share of right decisions, and the gradient of the mean.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Sums over the rows of one block. The numbers of rows are exact in double.
struct LossPartial {
  double loss, right, count;
};

/// y = {mean loss, share of right rows} from partial sums in their order, and 1 / rows if `inverse_count` is not null.
/// All are 0 if no row counts.
template <class T>
void loss_finish(Stream, const LossPartial* partials, std::int64_t count, View<T> y, T* inverse_count);

// Softmax: the mean of -log softmax(logits)[label] over all rows (pixels), and the share of rows whose largest logit is
// the label.

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

// Sigmoid: the mean of -log of the probability that a sigmoid gives each label, and the share of right decisions.

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
