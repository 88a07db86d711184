#pragma once
// Winograd's F(4x4, 3x3): the matrices of its transforms, applied to one row or column at a time.
//
// The scheme is the transpose of a product of polynomials by its values at the points 0, 1/2, -1/2, 2, -2 and infinity:
// y = A^T [(G g) * (B^T d)], in two dimensions Y = A^T [(G g G^T) * (B^T d B)] A. The gradient of the filter
// uses the same matrices: dw = G^T [(A dy A^T) * (B^T d B)] G. docs/algorithms/winograd_4x4.md gives them.

#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int winograd_tile = 4;        // outputs along one axis
constexpr int winograd_patch = 6;       // inputs, and points, along one axis
constexpr int winograd_positions = 36;  // positions of a transformed patch

/// v = B^T d.
template <class T>
__device__ void winograd_input(const T (&d)[winograd_patch], T (&v)[winograd_patch]) {
  const T even_half = d[4] - T(4) * d[2], odd_half = d[3] - T(4) * d[1];
  const T even_two = d[4] - T(0.25) * d[2], odd_two = d[3] - T(0.25) * d[1];
  v[0] = d[0] - T(4.25) * d[2] + d[4];
  v[1] = even_half + T(0.5) * odd_half;
  v[2] = even_half - T(0.5) * odd_half;
  v[3] = even_two + T(2) * odd_two;
  v[4] = even_two - T(2) * odd_two;
  v[5] = d[1] - T(4.25) * d[3] + d[5];
}

/// u = G g.
template <class T>
__device__ void winograd_filter(const T (&g)[3], T (&u)[winograd_patch]) {
  const T even_half = g[0] + T(0.25) * g[2], even_two = g[0] + T(4) * g[2];
  u[0] = g[0];
  u[1] = T(-8.0 / 15) * (even_half + T(0.5) * g[1]);
  u[2] = T(-8.0 / 15) * (even_half - T(0.5) * g[1]);
  u[3] = T(1.0 / 30) * (even_two + T(2) * g[1]);
  u[4] = T(1.0 / 30) * (even_two - T(2) * g[1]);
  u[5] = g[2];
}

/// y = A^T m.
template <class T>
__device__ void winograd_output(const T (&m)[winograd_patch], T (&y)[winograd_tile]) {
  const T sum_half = m[1] + m[2], difference_half = m[1] - m[2];
  const T sum_two = m[3] + m[4], difference_two = m[3] - m[4];
  y[0] = m[0] + sum_half + sum_two;
  y[1] = T(0.5) * difference_half + T(2) * difference_two;
  y[2] = T(0.25) * sum_half + T(4) * sum_two;
  y[3] = T(0.125) * difference_half + T(8) * difference_two + m[5];
}

/// u = A y.
template <class T>
__device__ void winograd_spread(const T (&y)[winograd_tile], T (&u)[winograd_patch]) {
  const T even_half = y[0] + T(0.25) * y[2], odd_half = y[1] + T(0.25) * y[3];
  const T even_two = y[0] + T(4) * y[2], odd_two = y[1] + T(4) * y[3];
  u[0] = y[0];
  u[1] = even_half + T(0.5) * odd_half;
  u[2] = even_half - T(0.5) * odd_half;
  u[3] = even_two + T(2) * odd_two;
  u[4] = even_two - T(2) * odd_two;
  u[5] = y[3];
}

/// g = G^T m.
template <class T>
__device__ void winograd_gradient(const T (&m)[winograd_patch], T (&g)[3]) {
  const T sum_half = m[1] + m[2], difference_half = m[1] - m[2];
  const T sum_two = m[3] + m[4], difference_two = m[3] - m[4];
  g[0] = m[0] + T(-8.0 / 15) * sum_half + T(1.0 / 30) * sum_two;
  g[1] = T(-4.0 / 15) * difference_half + T(1.0 / 15) * difference_two;
  g[2] = T(-2.0 / 15) * sum_half + T(2.0 / 15) * sum_two + m[5];
}

}  // namespace lamina::LAMINA_CUDA_SPACE
