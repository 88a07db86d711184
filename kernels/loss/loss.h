#pragma once
// Functions that the losses share: partial sums of rows, and the mean loss and accuracy from them.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Sums over the rows of one block. The numbers of rows are exact in double.
struct LossPartial {
  double loss, right, count;
};

/// y = {mean loss, share of right rows} from partial sums in their order, and 1 / rows if `inverse_count` is not null.
/// All are 0 if no row counts.
template <class T>
void loss_finish(Stream, const LossPartial* partials, std::int64_t count, View<T> y, T* inverse_count);

}  // namespace lamina::LAMINA_CUDA_SPACE
