#pragma once
// An optimiser's update of all parameters in a row; update.cu has the formulas.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

enum class UpdateRule { sgd, rmsprop, adadelta, adam };

struct UpdateNumbers {
  bool nesterov, clears_gradient;
  double gradient_scale, clip_norm, weight_decay, shrink, rate, decay, gain, decay2, gain2, epsilon, root_scale;
};

/// `lazy_row` above 0: rows of so many; one whose gradients are all 0 stays as it is. 0 for sgd with `first`.
/// Without it count and addresses are of whole packs of 16 bytes, as blocks of parameters are.
/// `sums` has room for `slices` sums and one factor; it is used only if clip_norm is above 0.
template <class T>
struct UpdateRow {
  std::int64_t count;
  T *p, *g, *first, *second;
  double* sums;
  int slices;
  std::int64_t lazy_row = 0;
};

/// No two of the row's pointers may share memory. `first` may be null for sgd.
template <class T>
void update(Stream, UpdateRule, const UpdateNumbers&, const UpdateRow<T>&);

}  // namespace lamina::LAMINA_CUDA_SPACE
