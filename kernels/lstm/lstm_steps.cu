// One step of an LSTM per launch, for any number of hidden values: the product and the cell in one kernel.
//
// A block has 32 hidden values (a lane each) of 8 images (2 for each of 4 warps). Forward a thread sums 4 gates of its
// 2 images over tiles of 16 of h, backward 2 gradients of h over tiles of 16 gates. h, forward, and the gradient of the
// cell, backward, go from launch to launch in `state`.

#include <algorithm>

#include "kernels/common/divide_up.h"
#include "kernels/common/reduce.h"
#include "lstm.h"
#include "lstm_cell.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int units = lanes, warps = 4, step_threads = units * warps, own_images = 2, images = warps * own_images,
              depth = 16;

/// vectors[b][k] = from[(first image + b) * pitch + k0 + k], or 0 outside.
template <class T>
__device__ void bring_vectors(const T* from, std::int64_t pitch, int first, int count, int k0, int length,
                              T (&vectors)[images][depth]) {
  const int b = static_cast<int>(threadIdx.x) / depth, k = static_cast<int>(threadIdx.x) % depth;
  vectors[b][k] = first + b < count && k0 + k < length ? from[(first + b) * pitch + k0 + k] : T(0);
}

template <class T>
__global__ __launch_bounds__(step_threads) void lstm_forward_step_kernel(LstmForwardProblem<T> p, int step,
                                                                         const T* h_before, T* h_after) {
  LAMINA_SHARED(T[4][units][depth + 1], weights);
  LAMINA_SHARED(T[images][depth], vectors);
  const LstmExtent& e = p.extent;
  const int hidden = e.hidden, thread = static_cast<int>(threadIdx.x), lane = thread % lanes, warp = thread / lanes;
  const int first_unit = static_cast<int>(blockIdx.x) * units, unit = first_unit + lane;
  for (int first = static_cast<int>(blockIdx.y) * images; first < e.images;
       first += static_cast<int>(gridDim.y) * images) {
    T sums[4][own_images] = {};
    for (int k0 = 0; step > 0 && k0 < hidden; k0 += depth) {
      __syncthreads();
      for (int i = thread; i < 4 * units * depth; i += step_threads) {
        const int k = i % depth, u = i / depth % units, gate = i / depth / units;
        const bool inside = first_unit + u < hidden && k0 + k < hidden;
        weights[gate][u][k] = inside ? p.w[(std::int64_t{gate} * hidden + first_unit + u) * hidden + k0 + k] : T(0);
      }
      bring_vectors(h_before, hidden, first, e.images, k0, hidden, vectors);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < depth; ++k)
#pragma unroll
        for (int gate = 0; gate < 4; ++gate)
#pragma unroll
          for (int b = 0; b < own_images; ++b)
            sums[gate][b] = fma(weights[gate][lane][k], vectors[warp * own_images + b][k], sums[gate][b]);
    }
#pragma unroll
    for (int b = 0; b < own_images; ++b) {
      const int n = first + warp * own_images + b;
      if (n >= e.images || unit >= hidden) continue;
      const std::int64_t row = e.row(n, step);
      T* const gates = p.gates + row * 4 * hidden + unit;
      T activated[4];
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) {
        const T a = gates[gate * hidden] + sums[gate][b] + p.bias[gate * hidden + unit];
        activated[gate] = gate == 2 ? std::tanh(a) : lstm_gate(a, e.hard);
        gates[gate * hidden] = activated[gate];
      }
      const T before = step > 0 ? p.cells[(row - 1) * hidden + unit] : T(0);
      const T cell = fma(activated[1], before, activated[0] * activated[2]);
      const T h = activated[3] * std::tanh(cell);
      p.cells[row * hidden + unit] = cell;
      h_after[std::int64_t{n} * hidden + unit] = h;
      if (!e.last) p.y.at(n, unit)[e.place(step)] = h;
      if (e.last && step + 1 == e.steps) p.y.at(n, unit)[0] = h;
    }
  }
}

template <class T>
__global__ __launch_bounds__(step_threads) void lstm_backward_step_kernel(LstmBackwardProblem<T> p, int step,
                                                                          T* dcells) {
  LAMINA_SHARED(T[depth][units], weights);
  LAMINA_SHARED(T[images][depth], vectors);
  const LstmExtent& e = p.extent;
  const int hidden = e.hidden, gates = 4 * hidden, thread = static_cast<int>(threadIdx.x), lane = thread % lanes,
            warp = thread / lanes;
  const int first_unit = static_cast<int>(blockIdx.x) * units, unit = first_unit + lane;
  const bool last_step = step + 1 == e.steps;
  for (int first = static_cast<int>(blockIdx.y) * images; first < e.images;
       first += static_cast<int>(gridDim.y) * images) {
    T sums[own_images] = {};
    for (int k0 = 0; !last_step && k0 < gates; k0 += depth) {
      __syncthreads();
      for (int i = thread; i < depth * units; i += step_threads) {
        const int k = i / units, u = i % units;
        const bool inside = first_unit + u < hidden && k0 + k < gates;
        weights[k][u] = inside ? p.w[(std::int64_t{k0} + k) * hidden + first_unit + u] : T(0);
      }
      bring_vectors(p.dgates + std::int64_t{step + 1} * gates, std::int64_t{e.steps} * gates, first, e.images, k0,
                    gates, vectors);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < depth; ++k)
#pragma unroll
        for (int b = 0; b < own_images; ++b)
          sums[b] = fma(weights[k][lane], vectors[warp * own_images + b][k], sums[b]);
    }
#pragma unroll
    for (int b = 0; b < own_images; ++b) {
      const int n = first + warp * own_images + b;
      if (n >= e.images || unit >= hidden) continue;
      const std::int64_t row = e.row(n, step);
      const T* const own = p.gates + row * gates + unit;
      const LstmGates<T> y{own[0], own[hidden], own[2 * hidden], own[3 * hidden]};
      const T before = step > 0 ? p.cells[(row - 1) * hidden + unit] : T(0);
      T dh = sums[b];
      if (!e.last) dh += p.dy.at(n, unit)[e.place(step)];
      if (e.last && last_step) dh += p.dy.at(n, unit)[0];
      T& dcell = dcells[std::int64_t{n} * hidden + unit];
      T dc = last_step ? T(0) : dcell;
      const LstmGates<T> d = lstm_cell_gradient(y, before, p.cells[row * hidden + unit], dh, dc, e.hard);
      dcell = dc;
      T* const out = p.dgates + row * gates + unit;
      out[0] = d.i, out[hidden] = d.f, out[2 * hidden] = d.g, out[3 * hidden] = d.o;
      p.h[row * hidden + unit] = step > 0 ? own[3 * hidden - gates] * std::tanh(before) : T(0);
    }
  }
}

dim3 grid_of(const LstmExtent& extent) {
  const auto blocks = [](int count, int each) { return static_cast<unsigned>(divide_up(count, each)); };
  return dim3(blocks(extent.hidden, units), std::min(blocks(extent.images, images), 65535U));
}

}  // namespace

template <class T>
void lstm_forward_steps(Stream stream, const LstmForwardProblem<T>& p, T* state) {
  const std::int64_t size = std::int64_t{p.extent.images} * p.extent.hidden;
  for (int step = 0; step < p.extent.steps; ++step) {
    launch(LAMINA_KERNEL(lstm_forward_step_kernel<T>), grid_of(p.extent), step_threads, 0, stream, p, step,
           static_cast<const T*>(state + (step + 1) % 2 * size), state + step % 2 * size);
  }
}

template <class T>
void lstm_backward_steps(Stream stream, const LstmBackwardProblem<T>& p, T* state) {
  for (int step = p.extent.steps - 1; step >= 0; --step) {
    launch(LAMINA_KERNEL(lstm_backward_step_kernel<T>), grid_of(p.extent), step_threads, 0, stream, p, step, state);
  }
}

#define LAMINA_INSTANTIATE(T)                                                 \
  template void lstm_forward_steps(Stream, const LstmForwardProblem<T>&, T*); \
  template void lstm_backward_steps(Stream, const LstmBackwardProblem<T>&, T*);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
