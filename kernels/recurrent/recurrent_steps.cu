// One step of a recurrent op per launch, for any number of hidden values: the product and the cell in one kernel.
//
// A block has 32 hidden values (a lane each) of 8 images (2 for each of 4 warps). Forward, a thread sums the gates of
// its 2 images over tiles of 16 elements of h. Backward, it sums 2 gradients of h over tiles of 16 gates. `state`
// carries h (forward) or the cell's gradient (backward) to the next launch.

#include <algorithm>

#include "cells.h"
#include "kernels/common/reduce.h"
#include "recurrent.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int units = lanes, warps = 4, step_threads = units * warps, own_images = 2, images = warps * own_images,
              depth = 16;

/// vectors[b][k] = from[(first image + b) * pitch + k0 + k], or 0 outside. From k = gap_at on, it reads `gap` further.
template <class T>
__device__ void bring_vectors(const T* from, std::int64_t pitch, int first, int count, int k0, int length, int gap_at,
                              int gap, T (&vectors)[images][depth]) {
  const int b = static_cast<int>(threadIdx.x) / depth, k = static_cast<int>(threadIdx.x) % depth;
  const int place = k0 + k < gap_at ? k0 + k : k0 + k + gap;
  vectors[b][k] = first + b < count && k0 + k < length ? from[(first + b) * pitch + place] : T(0);
}

template <class T, class Cell>
__global__ __launch_bounds__(step_threads) void recurrent_forward_step_kernel(RecurrentForwardProblem<T> p, int step,
                                                                              const T* h_before, T* h_after) {
  constexpr int matrices = Cell::matrices;
  LAMINA_SHARED(T[matrices][units][depth + 1], weights);
  LAMINA_SHARED(T[images][depth], vectors);
  const RecurrentExtent& e = p.extent;
  const int hidden = e.hidden, thread = static_cast<int>(threadIdx.x), lane = thread % lanes, warp = thread / lanes;
  const int first_unit = static_cast<int>(blockIdx.x) * units, unit = first_unit + lane;
  for (int first = static_cast<int>(blockIdx.y) * images; first < e.images;
       first += static_cast<int>(gridDim.y) * images) {
    T sums[matrices][own_images] = {};
    for (int k0 = 0; step > 0 && k0 < hidden; k0 += depth) {
      __syncthreads();
      for (int i = thread; i < matrices * units * depth; i += step_threads) {
        const int k = i % depth, u = i / depth % units, gate = i / depth / units;
        const bool inside = first_unit + u < hidden && k0 + k < hidden;
        weights[gate][u][k] = inside ? p.w[(std::int64_t{gate} * hidden + first_unit + u) * hidden + k0 + k] : T(0);
      }
      bring_vectors(h_before, hidden, first, e.images, k0, hidden, hidden, 0, vectors);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < depth; ++k)
#pragma unroll
        for (int gate = 0; gate < matrices; ++gate)
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
        activated[gate] = gate < matrices ? gates[gate * hidden] : T(0);
        if (Cell::of_h(gate) >= 0) activated[gate] += sums[Cell::of_h(gate)][b];
        activated[gate] += p.bias[gate * hidden + unit];
      }
      T cell = step > 0 ? p.cells[(row - 1) * hidden + unit] : T(0);
      const T h = Cell::forward(activated, cell, e.hard);
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) gates[gate * hidden] = activated[gate];
      p.cells[row * hidden + unit] = cell;
      h_after[std::int64_t{n} * hidden + unit] = h;
      if (!e.last) p.y.at(n, unit)[e.place(step)] = h;
      if (e.last && step + 1 == e.steps) p.y.at(n, unit)[0] = h;
    }
  }
}

template <class T, class Cell>
__global__ __launch_bounds__(step_threads) void recurrent_backward_step_kernel(RecurrentBackwardProblem<T> p, int step,
                                                                               T* dcells) {
  LAMINA_SHARED(T[depth][units], weights);
  LAMINA_SHARED(T[images][depth], vectors);
  const RecurrentExtent& e = p.extent;
  const int hidden = e.hidden, gates = 4 * hidden, products = Cell::matrices * hidden,
            thread = static_cast<int>(threadIdx.x), lane = thread % lanes, warp = thread / lanes;
  const int first_unit = static_cast<int>(blockIdx.x) * units, unit = first_unit + lane;
  const bool last_step = step + 1 == e.steps;
  for (int first = static_cast<int>(blockIdx.y) * images; first < e.images;
       first += static_cast<int>(gridDim.y) * images) {
    T sums[own_images] = {};
    for (int k0 = 0; !last_step && k0 < products; k0 += depth) {
      __syncthreads();
      for (int i = thread; i < depth * units; i += step_threads) {
        const int k = i / units, u = i % units;
        const bool inside = first_unit + u < hidden && k0 + k < products;
        weights[k][u] = inside ? p.w[(std::int64_t{k0} + k) * hidden + first_unit + u] : T(0);
      }
      bring_vectors(p.dgates + std::int64_t{step + 1} * gates, std::int64_t{e.steps} * gates, first, e.images, k0,
                    products, 2 * hidden, gates - products, vectors);
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
      const T y[4] = {own[0], own[hidden], own[2 * hidden], own[3 * hidden]};
      const T before = step > 0 ? p.cells[(row - 1) * hidden + unit] : T(0);
      T dh = sums[b];
      if (!e.last) dh += p.dy.at(n, unit)[e.place(step)];
      if (e.last && last_step) dh += p.dy.at(n, unit)[0];
      T& dcell = dcells[std::int64_t{n} * hidden + unit];
      T dc = last_step ? T(0) : dcell, d[4];
      Cell::gradient(y, before, p.cells[row * hidden + unit], dh, dc, e.hard, d);
      dcell = dc;
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) p.dgates[row * gates + gate * hidden + unit] = d[gate];
      p.h[row * hidden + unit] = step > 0 ? Cell::h(own[3 * hidden - gates], before) : T(0);
    }
  }
}

dim3 grid_of(const RecurrentExtent& extent) {
  const auto blocks = [](int count, int each) { return static_cast<unsigned>(divide_up(count, each)); };
  return dim3(blocks(extent.hidden, units), std::min(blocks(extent.images, images), 65535U));
}

/// Calls launch(LstmCell()) or launch(GruCell()).
template <class Launch>
void with_cell(const RecurrentExtent& extent, Launch launch) {
  extent.gru ? launch(GruCell()) : launch(LstmCell());
}

}  // namespace

template <class T>
void recurrent_forward_steps(Stream stream, const RecurrentForwardProblem<T>& p, T* state) {
  const std::int64_t size = std::int64_t{p.extent.images} * p.extent.hidden;
  with_cell(p.extent, [&](auto cell) {
    using Cell = decltype(cell);
    for (int step = 0; step < p.extent.steps; ++step)
      launch(LAMINA_KERNEL(recurrent_forward_step_kernel<T, Cell>), grid_of(p.extent), step_threads, 0, stream, p, step,
             static_cast<const T*>(state + (step + 1) % 2 * size), state + step % 2 * size);
  });
}

template <class T>
void recurrent_backward_steps(Stream stream, const RecurrentBackwardProblem<T>& p, T* state) {
  with_cell(p.extent, [&](auto cell) {
    using Cell = decltype(cell);
    for (int step = p.extent.steps - 1; step >= 0; --step)
      launch(LAMINA_KERNEL(recurrent_backward_step_kernel<T, Cell>), grid_of(p.extent), step_threads, 0, stream, p,
             step, state);
  });
}

#define LAMINA_INSTANTIATE(T)                                                           \
  template void recurrent_forward_steps(Stream, const RecurrentForwardProblem<T>&, T*); \
  template void recurrent_backward_steps(Stream, const RecurrentBackwardProblem<T>&, T*);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
