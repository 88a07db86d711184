#pragma once
// The kernels of a recurrent op, except for its products over all steps.
//
// Steps are counted in the order of computation. A row is one image at one step; row (n, s) is n * steps + s. The gates
// of a row are in the order i, f, g, o or r, z, n, m. weight_ih has rows for the first `matrices()` gates.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

struct RecurrentExtent {
  int images = 1, steps = 1, hidden = 1;
  bool reverse = false;  ///< whether step s is at steps - 1 - s along the tensors
  bool hard = false;     ///< whether gates are min(max(0.2 a + 0.5, 0), 1), otherwise logistic
  bool last = false;     ///< whether y and dy hold the last step alone
  bool gru = false;

  LAMINA_HOST_DEVICE int matrices() const { return gru ? 3 : 4; }
  LAMINA_HOST_DEVICE std::int64_t row(int n, int step) const { return std::int64_t{n} * steps + step; }
  LAMINA_HOST_DEVICE int place(int step) const { return reverse ? steps - 1 - step : step; }
};

/// The order of rows. In reverse, steps count from the end. Row (n, s) is n * h + s or, with `steps_first`, s * N + n.
struct RowOrder {
  bool reverse = false, steps_first = false;
};

/// row(n, s)[c] = x[n, c, t], where s is t or, in reverse, h - 1 - t. x has one column.
template <class T>
void recurrent_to_rows(Stream, View<const T> x, RowOrder, T* rows);

/// The inverse: x = rows, or x += rows with `adds`.
template <class T>
void recurrent_from_rows(Stream, const T* rows, RowOrder, View<T> x, bool adds);

/// row(n, s)[c] = 1 where c is the id, else 0. Rows have `vocabulary` elements. An invalid id gives NaN.
template <class T>
void recurrent_one_hot(Stream, View<const T> ids, RowOrder, int vocabulary, T* rows);

/// gates[row][j] = w[j][id of the row], where w is weight_ih. An invalid id gives NaN.
template <class T>
void recurrent_choose(Stream, const RecurrentExtent&, const T* w, int vocabulary, View<const T> ids, T* gates);

/// dw[j][id] = sum over the rows with this id of dgates[row][j], or dw += with `adds`.
template <class T>
void recurrent_choose_gradient(Stream, const RecurrentExtent&, View<const T> ids, int vocabulary, const T* dgates,
                               T* dw, bool adds);

template <class T>
struct RecurrentForwardProblem {
  RecurrentExtent extent;
  const T* w = nullptr;       ///< recurrent weights, matrices() hidden x hidden
  const T* turned = nullptr;  ///< `w` transposed, hidden x 4 hidden; read by lstm_forward_persistent
  const T* bias = nullptr;
  T* gates = nullptr;  ///< rows x 4 hidden: products of x on entry, activated on exit; m has no activation
  T* cells = nullptr;  ///< rows x hidden
  View<T> y;
};

template <class T>
struct RecurrentBackwardProblem {
  RecurrentExtent extent;
  const T* w = nullptr;
  const T* gates = nullptr;
  const T* cells = nullptr;
  View<const T> dy;
  T* dgates = nullptr;  ///< rows x 4 hidden: gradients of the products
  T* h = nullptr;       ///< rows x hidden: h of the step before; 0 at the first
};

/// The most hidden values that one block computes alone.
constexpr int lstm_persistent_hidden = 128;

/// All steps of an LSTM in one launch: a block has some images from the first step to the last. The caller must check
/// that hidden is at most lstm_persistent_hidden.
template <class T>
void lstm_forward_persistent(Stream, const RecurrentForwardProblem<T>&);
template <class T>
void lstm_backward_persistent(Stream, const RecurrentBackwardProblem<T>&);

/// One launch for each step. `state` has room for recurrent_steps_state(extent) numbers.
template <class T>
void recurrent_forward_steps(Stream, const RecurrentForwardProblem<T>&, T* state);
template <class T>
void recurrent_backward_steps(Stream, const RecurrentBackwardProblem<T>&, T* state);
inline std::int64_t recurrent_steps_state(const RecurrentExtent& extent) {
  return std::int64_t{2} * extent.images * extent.hidden;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
