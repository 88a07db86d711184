#pragma once
// A table for each instruction set: functions that are made of exponentials, and one step of a recurrent op.

#include <cstdint>

namespace lamina::eigen {

/// One step of an LSTM or a GRU for some rows, after the products. A row is `width` hidden values in whole vectors. Its
/// gates are 4 * width numbers, in the order i, f, g, o or n, r, z, m. The cell of a GRU is its h; m has no activation.
template <class T>
struct CellStep {
  std::int64_t rows, width;
  T* gates;              ///< products on entry, activated gates on exit
  const T* bias;         ///< 4 * width, added to the products
  const T* cell_before;  ///< rows x width, or null: zeros
  T* cell;               ///< rows x width; may be cell_before
  T* h;
  std::int64_t h_ld;  ///< elements from row to row of h
  bool gru, hard;     ///< `hard`: whether gates are min(max(0.2 a + 0.5, 0), 1); else logistic
};

/// The gradient of one step.
template <class T>
struct CellStepGradient {
  std::int64_t rows, width;
  const T* gates;        ///< activated gates of forward
  const T* cell_before;  ///< rows x width, or null: zeros
  const T* cell;
  const T* dh;  ///< rows x width
  T* dcell;     ///< rows x width; on entry gradient of cell from the next step, on exit of cell_before
  T* dgates;    ///< gradient of the products
  T* h;         ///< h of the step, computed again
  std::int64_t h_ld;
  bool gru, hard;
};

/// Error bounds (derived in activations_body.inc), with u the unit roundoff: `logistic`, `tanh` and `silu` err by at
/// most 8 u of the exact value. `logistic` may err by twice the least normal number if that is more. `silu` is 0 below
/// -87 (f32: an error of at most 2^-119) or -708 (f64: 2^-1011). Its derivative `silu_slope` errs by at most 24 u
/// logistic(x) (1 + |x|). `exp` errs by at most 9 u of the value; `less_one`, which is exp(x) - 1 below 0 and 0 above,
/// by 4 u. `softplus` errs by at most 8 u of values above exp(-87) (f32) or exp(-708) (f64), its slope by 4 u. `gelu`,
/// `gelu_tanh` and `mish` err by at most 12 u |x|, their slopes by 32 u (1 + |x|). A NaN stays a NaN. An element has
/// the same bits in any place.
template <class T>
struct ActivationKernels {
  using Rows = void (*)(T* to, const T* from, std::int64_t count);
  Rows logistic, tanh, silu, silu_slope, exp, less_one, gelu, gelu_slope, gelu_tanh, gelu_tanh_slope, mish, mish_slope;
  Rows softplus, softplus_slope;  ///< the slope is a function of y
  /// x = factor x^a, for a that is not 0. Errs by 2e-10 of x^a where this is a number of f32. Null if T is not double.
  void (*power)(T* x, std::int64_t count, T a, T factor);
  void (*cell)(const CellStep<T>&);
  void (*cell_gradient)(const CellStepGradient<T>&);
};

}  // namespace lamina::eigen
