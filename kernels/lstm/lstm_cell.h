#pragma once
// One hidden value of an LSTM at one step, forward and backward.

#include <cmath>

#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
__device__ T lstm_gate(T a, bool hard) {
  if (!hard) return T(1) / (T(1) + std::exp(-a));
  const T y = T(0.2) * a + T(0.5);
  return y < 0 ? T(0) : y > 1 ? T(1) : y;
}

/// The derivative of a gate by its argument, computed from the gate's value.
template <class T>
__device__ T lstm_gate_slope(T y, bool hard) {
  if (!hard) return y * (T(1) - y);
  return y > 0 && y < 1 ? T(0.2) : T(0);
}

template <class T>
struct LstmGates {
  T i, f, g, o;
};

/// The gradients of the gates' arguments. On entry, `dc` is the gradient of c that comes from the next step; on exit,
/// it is that of the cell before.
template <class T>
__device__ LstmGates<T> lstm_cell_gradient(const LstmGates<T>& y, T cell_before, T cell, T dh, T& dc, bool hard) {
  const T tanh_cell = std::tanh(cell);
  const T whole = dc + dh * y.o * (T(1) - tanh_cell * tanh_cell);
  dc = whole * y.f;
  return {whole * y.g * lstm_gate_slope(y.i, hard), whole * cell_before * lstm_gate_slope(y.f, hard),
          whole * y.i * (T(1) - y.g * y.g), dh * tanh_cell * lstm_gate_slope(y.o, hard)};
}

}  // namespace lamina::LAMINA_CUDA_SPACE
