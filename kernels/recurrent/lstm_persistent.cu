// All steps of an LSTM in one launch: a block has up to 4 images from the first step to the last, so no block waits for
// another.
//
// Forward: thread j computes gate j of the block's images. It keeps the first `kept` numbers of row j of the recurrent
// weights in registers, and loads the rest from global memory. There the numbers of neighbouring threads are
// neighbours, and stay in the first-level cache. h is in shared memory. A step: thread j sums and activates its gate;
// barrier; thread (image, hidden value) computes c, which stays in its register, and h; barrier. Backward: thread (gate
// q, hidden value k) has column k of the rows of gate q. A step: this thread multiplies its column by the gate's
// gradients of the step after, in shared memory; barrier; thread (image, hidden value) adds the four gates' sums to dy
// in order, and computes the gradients of its gates; barrier.
//
// A step has 4 H^2 multiply-adds per image; a thread does H of them.

#include <algorithm>
#include <type_traits>

#include "cells.h"
#include "kernels/common/packs.h"
#include "recurrent.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int most_threads = 4 * lstm_persistent_hidden;

/// Numbers of a row of weights in registers. Each of 512 threads may have 128 registers, so more images leave fewer for
/// weights.
template <class T, int images>
constexpr int kept = std::is_same_v<T, float> ? (images == 1   ? 64
                                                 : images == 2 ? 48
                                                               : 32)
                                              : (images == 1 ? 12 : 8);

/// Length of an image's vector in shared memory: h, or the gradients of one gate. Zeros pad it to `kept`, in whole
/// packs.
template <class T, int images>
LAMINA_HOST_DEVICE constexpr int padded(int hidden) {
  constexpr int width = widest<T>;
  const int longest = hidden > kept<T, images> ? hidden : kept<T, images>;
  return divide_up(longest, width) * width;
}

/// sums[b] += the products of a row of weights with the vector of each image.
template <class T, int images>
__device__ void add_products(const T (&weight)[kept<T, images>], const T* rest, std::int64_t between, int hidden,
                             const T* vectors, int vector_pitch, T (&sums)[images]) {
  constexpr int width = widest<T>;
#pragma unroll
  for (int k = 0; k < kept<T, images>; k += width) {
#pragma unroll
    for (int b = 0; b < images; ++b) {
      const Pack<T, width> pack = load_pack<width>(vectors + b * vector_pitch + k);
#pragma unroll
      for (int i = 0; i < width; ++i) sums[b] = fma(weight[k + i], pack.v[i], sums[b]);
    }
  }
  for (int k = kept<T, images>; k < hidden; ++k) {
    const T factor = rest[k * between];
#pragma unroll
    for (int b = 0; b < images; ++b) sums[b] = fma(factor, vectors[b * vector_pitch + k], sums[b]);
  }
}

template <class T, int images>
__global__ __launch_bounds__(most_threads) void lstm_forward_persistent_kernel(RecurrentForwardProblem<T> p) {
  const RecurrentExtent& e = p.extent;
  const int hidden = e.hidden, gates = 4 * hidden, pitch = padded<T, images>(hidden),
            thread = static_cast<int>(threadIdx.x);
  LAMINA_DYNAMIC_SHARED(T, shared);
  T* const h = shared;                      // images x pitch
  T* const activated = h + images * pitch;  // images x gates
  const int first = static_cast<int>(blockIdx.x) * images;
  const bool has_gate = thread < gates;
  const int j = has_gate ? thread : 0;  // threads without a gate compute gate 0, unused
  T weight[kept<T, images>];
#pragma unroll
  for (int k = 0; k < kept<T, images>; ++k) weight[k] = k < hidden ? p.turned[std::int64_t{k} * gates + j] : T(0);
  const T bias = p.bias[j];
  const int own_image = thread / hidden, unit = thread % hidden, n = first + own_image;
  const bool owns = own_image < images && n < e.images;
  T cell = 0;
  for (int i = thread; i < images * pitch; i += static_cast<int>(blockDim.x)) h[i] = 0;
  __syncthreads();
  for (int step = 0; step < e.steps; ++step) {
    T given[images], sums[images];
#pragma unroll
    for (int b = 0; b < images; ++b) {
      // Only this thread reads the gate, and it writes the gate below.
      given[b] = has_gate ? p.gates[e.row(min(first + b, e.images - 1), step) * gates + j] : T(0);
      sums[b] = 0;
    }
    add_products<T, images>(weight, p.turned + j, gates, hidden, h, pitch, sums);
    if (has_gate) {
#pragma unroll
      for (int b = 0; b < images; ++b) {
        const T a = given[b] + sums[b] + bias;
        const T value = j / hidden == 2 ? std::tanh(a) : recurrent_gate(a, e.hard);
        activated[b * gates + j] = value;
        if (first + b < e.images) p.gates[e.row(first + b, step) * gates + j] = value;
      }
    }
    __syncthreads();
    if (owns) {
      const T* const own = activated + own_image * gates + unit;
      cell = fma(own[hidden], cell, own[0] * own[2 * hidden]);
      const T value = own[3 * hidden] * std::tanh(cell);
      h[own_image * pitch + unit] = value;
      p.cells[e.row(n, step) * hidden + unit] = cell;
      if (!e.last) p.y.at(n, unit)[e.place(step)] = value;
      if (e.last && step + 1 == e.steps) p.y.at(n, unit)[0] = value;
    }
    __syncthreads();
  }
}

template <class T, int images>
__global__ __launch_bounds__(most_threads) void lstm_backward_persistent_kernel(RecurrentBackwardProblem<T> p) {
  const RecurrentExtent& e = p.extent;
  const int hidden = e.hidden, gates = 4 * hidden, pitch = padded<T, images>(hidden),
            thread = static_cast<int>(threadIdx.x);
  LAMINA_DYNAMIC_SHARED(T, shared);
  T* const dgates = shared;                      // images x 4 x pitch
  T* const parts = dgates + images * 4 * pitch;  // images x gates
  const int first = static_cast<int>(blockIdx.x) * images;
  const int j = thread < gates ? thread : 0, q = j / hidden, k = j % hidden;
  const T* const column = p.w + std::int64_t{q} * hidden * hidden + k;
  T weight[kept<T, images>];
#pragma unroll
  for (int u = 0; u < kept<T, images>; ++u) weight[u] = u < hidden ? column[std::int64_t{u} * hidden] : T(0);
  const int own_image = thread / hidden, unit = thread % hidden, n = first + own_image;
  const bool owns = own_image < images && n < e.images;
  T dcell = 0;
  for (int i = thread; i < images * 4 * pitch; i += static_cast<int>(blockDim.x)) dgates[i] = 0;
  __syncthreads();
  for (int step = e.steps - 1; step >= 0; --step) {
    T y[4] = {}, cell = 0, cell_before = 0, h_before = 0, dh = 0;
    if (owns) {  // loaded before the products, which hide the latency of memory
      const std::int64_t row = e.row(n, step);
      const T* const own = p.gates + row * gates + unit;
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) y[gate] = own[gate * hidden];
      cell = p.cells[row * hidden + unit];
      if (step > 0) {
        cell_before = p.cells[(row - 1) * hidden + unit];
        h_before = own[3 * hidden - gates];  // o of the step before; tanh(c) follows below
      }
      if (!e.last) dh = p.dy.at(n, unit)[e.place(step)];
      if (e.last && step + 1 == e.steps) dh = p.dy.at(n, unit)[0];
    }
    T sums[images] = {};
    add_products<T, images>(weight, column, hidden, hidden, dgates + q * pitch, 4 * pitch, sums);
    if (thread < gates) {
#pragma unroll
      for (int b = 0; b < images; ++b) parts[b * gates + j] = sums[b];
    }
    __syncthreads();
    if (owns) {
      const T* const part = parts + own_image * gates + unit;
      dh += part[0] + part[hidden] + part[2 * hidden] + part[3 * hidden];
      T d[4];
      LstmCell::gradient(y, cell_before, cell, dh, dcell, e.hard, d);
      const std::int64_t row = e.row(n, step);
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) {
        dgates[(own_image * 4 + gate) * pitch + unit] = d[gate];
        p.dgates[row * gates + gate * hidden + unit] = d[gate];
      }
      p.h[row * hidden + unit] = h_before * std::tanh(cell_before);
    }
    __syncthreads();
  }
}

/// Calls launch(std::integral_constant<int, images of a block>()). Blocks have few images, so that a large enough batch
/// gives each multiprocessor of a large device a block.
template <class Launch>
void with_images(int images, Launch launch) {
  if (images <= large_device) {
    launch(std::integral_constant<int, 1>());
  } else if (images <= 2 * large_device) {
    launch(std::integral_constant<int, 2>());
  } else {
    launch(std::integral_constant<int, 4>());
  }
}

unsigned blocks_of(int images, int of_block) { return static_cast<unsigned>(divide_up(images, of_block)); }

unsigned threads_of(int hidden) { return static_cast<unsigned>((4 * hidden + 31) / 32 * 32); }

}  // namespace

template <class T>
void lstm_forward_persistent(Stream stream, const RecurrentForwardProblem<T>& p) {
  with_images(p.extent.images, [&](auto count) {
    constexpr int images = decltype(count)::value;
    const int hidden = p.extent.hidden;
    launch(LAMINA_KERNEL(lstm_forward_persistent_kernel<T, images>), blocks_of(p.extent.images, images),
           threads_of(hidden), images * static_cast<std::size_t>(padded<T, images>(hidden) + 4 * hidden) * sizeof(T),
           stream, p);
  });
}

template <class T>
void lstm_backward_persistent(Stream stream, const RecurrentBackwardProblem<T>& p) {
  with_images(p.extent.images, [&](auto count) {
    constexpr int images = decltype(count)::value;
    const int hidden = p.extent.hidden;
    launch(LAMINA_KERNEL(lstm_backward_persistent_kernel<T, images>), blocks_of(p.extent.images, images),
           threads_of(hidden), images * 4 * static_cast<std::size_t>(padded<T, images>(hidden) + hidden) * sizeof(T),
           stream, p);
  });
}

#define LAMINA_INSTANTIATE(T)                                                       \
  template void lstm_forward_persistent(Stream, const RecurrentForwardProblem<T>&); \
  template void lstm_backward_persistent(Stream, const RecurrentBackwardProblem<T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
