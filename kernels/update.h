#pragma once
// An optimiser's update of a row of parameters (update.cu has the formulas), and dynamic scaling of its loss: the
// state, and how a step changes it.

#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The state on the device. Its layout and meaning are those of LossScale in lamina/backend.h.
struct LossScaleState {
  float scale, zero;
  double inverse;
  std::uint64_t updates;
  std::uint32_t good, skips;
};

struct LossScaleLimits {
  float least, most;
  std::uint32_t growth;
};

/// Adapts the state to whether all elements of g are finite. g consists of whole packs, and is aligned to 16 bytes.
void check_overflow(Stream, const float* g, std::int64_t count, LossScaleState*, LossScaleLimits);

enum class UpdateRule { sgd, rmsprop, adadelta, adam };

/// The effect of an update's number on the factors of Adam; lamina/backend.h has the formulas.
enum class UpdateCorrection { none, adam, keras_adam };

struct UpdateNumbers {
  bool nesterov, clears_gradient;
  double gradient_scale, clip_norm, weight_decay, shrink, rate, decay, gain, decay2, gain2, epsilon, root_scale;
  UpdateCorrection correction;  ///< used with a row's loss_scale
};

/// `lazy_row` above 0 is the length of a row; a row whose gradients are all 0 stays as it is. For sgd with `first` it
/// is 0. If `lazy_row` is 0, count is whole packs of 16 bytes and addresses are multiples of 16, as in a plan.
/// `loss_scale`, for float, is the start of a block of loss_scale_block bytes. Gradients are divided by the scale, the
/// state's number of updates corrects the factors, and a skipped update at most clears gradients.
/// `sums` has room for `slices` sums and one factor. It is used only if clip_norm is above 0.
template <class T>
struct UpdateRow {
  std::int64_t count;
  T *p, *g, *first, *second;
  double* sums;
  int slices;
  std::int64_t lazy_row = 0;
  LossScaleState* loss_scale = nullptr;
};

/// The bytes of a row's loss_scale, including the room behind it that an update needs.
constexpr std::size_t loss_scale_block = 256;

/// No two of the row's pointers may share memory. `first` may be null for sgd.
template <class T>
void update(Stream, UpdateRule, const UpdateNumbers&, const UpdateRow<T>&);

}  // namespace lamina::LAMINA_CUDA_SPACE
