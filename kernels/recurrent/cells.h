#pragma once
// One hidden value of an LSTM or a GRU at one step, forward and backward.
//
// The gates are in the order i, f, g, o or r, z, n, m. The cell of a GRU is its h. A type has
//   matrices     number of gates with a product of x, the first ones; as many gates have a product of h
//   of_h         index of a gate among those with a product of h; -1: it has none
//   forward      activates the gates in place, makes the cell from the cell before, gives h
//   gradient     the gradients of the gates' arguments. On entry dc is the gradient of the cell from the next step, on
//                exit the gradient of the cell before
//   h            h of a step, from its last gate and its cell

#include <cmath>

#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
__device__ T recurrent_gate(T a, bool hard) {
  if (!hard) return T(1) / (T(1) + std::exp(-a));
  const T y = T(0.2) * a + T(0.5);
  return y < 0 ? T(0) : y > 1 ? T(1) : y;
}

/// The derivative of a gate by its argument, computed from the gate's value.
template <class T>
__device__ T recurrent_gate_slope(T y, bool hard) {
  if (!hard) return y * (T(1) - y);
  return y > 0 && y < 1 ? T(0.2) : T(0);
}

struct LstmCell {
  static constexpr int matrices = 4;
  LAMINA_HOST_DEVICE static constexpr int of_h(int gate) { return gate; }

  template <class T>
  __device__ static T forward(T (&a)[4], T& cell, bool hard) {
    for (int gate = 0; gate < 4; ++gate) a[gate] = gate == 2 ? std::tanh(a[gate]) : recurrent_gate(a[gate], hard);
    cell = fma(a[1], cell, a[0] * a[2]);
    return a[3] * std::tanh(cell);
  }
  template <class T>
  __device__ static void gradient(const T (&y)[4], T cell_before, T cell, T dh, T& dc, bool hard, T (&d)[4]) {
    const T tanh_cell = std::tanh(cell);
    const T whole = dc + dh * y[3] * (T(1) - tanh_cell * tanh_cell);
    dc = whole * y[1];
    d[0] = whole * y[2] * recurrent_gate_slope(y[0], hard);
    d[1] = whole * cell_before * recurrent_gate_slope(y[1], hard);
    d[2] = whole * y[0] * (T(1) - y[2] * y[2]);
    d[3] = dh * tanh_cell * recurrent_gate_slope(y[3], hard);
  }
  template <class T>
  __device__ static T h(T o, T cell) {
    return o * std::tanh(cell);
  }
};

struct GruCell {
  static constexpr int matrices = 3;
  LAMINA_HOST_DEVICE static constexpr int of_h(int gate) { return gate < 2 ? gate : gate == 2 ? -1 : 2; }

  template <class T>
  __device__ static T forward(T (&a)[4], T& cell, bool hard) {
    for (int gate = 0; gate < 2; ++gate) a[gate] = recurrent_gate(a[gate], hard);
    a[2] = std::tanh(fma(a[0], a[3], a[2]));
    return cell = fma(a[1], cell, (T(1) - a[1]) * a[2]);
  }
  template <class T>
  __device__ static void gradient(const T (&y)[4], T cell_before, T /*cell*/, T dh, T& dc, bool hard, T (&d)[4]) {
    const T whole = dc + dh;
    dc = whole * y[1];
    d[2] = whole * (T(1) - y[1]) * (T(1) - y[2] * y[2]);
    d[3] = d[2] * y[0];
    d[0] = d[2] * y[3] * recurrent_gate_slope(y[0], hard);
    d[1] = whole * (cell_before - y[2]) * recurrent_gate_slope(y[1], hard);
  }
  template <class T>
  __device__ static T h(T /*m*/, T cell) {
    return cell;
  }
};

}  // namespace lamina::LAMINA_CUDA_SPACE
