#pragma once
// Kernels for tests of the emulator: correct kernels, and kernels with faults that the emulator must report.

#include <string>

#include "kernels/common/launch.h"

namespace lamina::cuda_host::trial {

/// c = a b, where a is m x k and b is k x n, row-major. `synced` adds the second barrier: a tile is overwritten only
/// after all threads have read it.
template <class T, bool synced>
__global__ void tiled_product_kernel(int m, int n, int k, const T* a, const T* b, T* c) {
  constexpr int tile = 8;
  LAMINA_SHARED(T[tile][tile], from_a);
  LAMINA_SHARED(T[tile][tile], from_b);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * tile + y, column = static_cast<int>(blockIdx.x) * tile + x;
  T sum = 0;
  for (int first = 0; first < k; first += tile) {
    from_a[y][x] = row < m && first + x < k ? a[row * k + first + x] : T(0);
    from_b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : T(0);
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += from_a[y][i] * from_b[i][x];
    if (synced) __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

/// Each block computes one sum.
__global__ void sum_kernel(int count, const int* x, int* sums) {
  LAMINA_SHARED(int[32], parts);
  const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  int sum = 0;
  for (int i = static_cast<int>(blockIdx.x) * threads + t; i < count; i += threads * static_cast<int>(gridDim.x))
    sum += x[i];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffU, sum, distance);
  if (t % 32 == 0) parts[t / 32] = sum;
  __syncthreads();
  if (t >= 32) return;
  sum = t < threads / 32 ? parts[t] : 0;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  if (t == 0) sums[blockIdx.x] = sum;
}

__global__ void axpy_kernel(int count, double a, const double* x, double* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] += a * x[i];
}

/// places[i] = i for the i-th thread. Grid and blocks have three axes.
__global__ void places_kernel(int* places) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  places[i] += static_cast<int>(i);
}

/// Reverses each block's elements through dynamic shared memory, and writes `wrong` elements beyond its end.
/// clean[block] is whether the memory was NaN at first.
__global__ void reverse_kernel(int wrong, float* x, int* clean) {
  LAMINA_DYNAMIC_SHARED(float, held);
  const unsigned t = threadIdx.x, last = blockDim.x - 1, first = blockIdx.x * blockDim.x;
  const int bad = __syncthreads_count(isnan(held[t]) ? 0 : 1);
  held[t] = x[first + t];
  if (static_cast<int>(t) < wrong) held[blockDim.x + t] = 0;
  __syncthreads();
  x[first + t] = held[last - t];
  if (t == 0) clean[blockIdx.x] = bad == 0 ? 1 : 0;
}

template <class T>
struct Held {
  struct alignas(16) Shared {
    T values[2][32];
    int written;
  };
};

/// A kernel with a fault. Block 0 writes shared memory, and every block of 32 threads copies it to y, so the other
/// blocks read what an earlier block left. The shared memory is a template's struct, a single value, and an array in a
/// function.
template <class T>
__device__ T found_in_template(bool writes) {
  LAMINA_SHARED(T[32], held);
  if (writes) held[threadIdx.x] = T(5);
  __syncthreads();
  return held[threadIdx.x];
}
template <class T>
__global__ void left_by_former_block_kernel(T* y, int* written) {
  LAMINA_SHARED(typename Held<T>::Shared, held);
  LAMINA_SHARED(T, one);
  const bool writes = blockIdx.x == 0;
  const unsigned t = threadIdx.x, i = blockIdx.x * 32 + t;
  if (writes) held.values[1][t] = T(5);
  if (writes && t == 0) {
    held.written = 5;
    one = T(5);
  }
  __syncthreads();
  y[i] = (held.values[1][t] + found_in_template<T>(writes) + one) / 3;
  if (t == 0) written[blockIdx.x] = held.written;
}

/// Counts to `rounds` in shared memory. Each call sees the value of the previous call.
__device__ inline int counted_on(bool first) {
  LAMINA_SHARED(int[32], count);
  count[threadIdx.x] = first ? 1 : count[threadIdx.x] + 1;
  __syncthreads();
  return count[threadIdx.x];
}
__global__ void counting_kernel(int rounds, int* y) {
  int reached = 0;
  for (int round = 0; round < rounds; ++round) reached = counted_on(round == 0);
  y[blockIdx.x * 32 + threadIdx.x] = reached;
}

/// x[i] = x[i + 32] in place, except in the last block. With several blocks this is a fault, because a block reads
/// elements that the next block writes.
__global__ void shift_in_place_kernel(int* x) {
  const unsigned i = blockIdx.x * 32 + threadIdx.x;
  if (blockIdx.x + 1 < gridDim.x) x[i] = x[i + 32];
}

/// turn[block] = the number of blocks that ran before this block.
__global__ void block_turns_kernel(int* count, int* turn) {
  if (threadIdx.x == 0) turn[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = atomicAdd(count, 1);
}

/// votes[0]: the ballot of even lanes; [1], [2], [3]: any, all and syncthreads_or; [4]: the sum of lanes 14 and 15 by a
/// shuffle.
__global__ void votes_kernel(unsigned* votes) {
  const unsigned t = threadIdx.x;
  const unsigned even = __ballot_sync(0xffffffffU, t % 2 == 0);
  const int any = __any_sync(0xffffffffU, t == 5), all = __all_sync(0xffffffffU, t == 5),
            some = __syncthreads_or(t == 7);
  double passed = t;
  if (t < 16) passed += __shfl_up_sync(0x0000ffffU, passed, 1, 16);
  if (t == 15) votes[4] = static_cast<unsigned>(passed);
  if (t != 0) return;
  votes[0] = even;
  votes[1] = static_cast<unsigned>(any);
  votes[2] = static_cast<unsigned>(all);
  votes[3] = static_cast<unsigned>(some);
}

// Kernels with faults follow.

__global__ void early_return_kernel() {
  const std::string owned(100, 'x');  // must be freed when the launch fails (leak sanitizer)
  if (threadIdx.x == 3) return;
  __syncthreads();
}
__global__ void two_barriers_kernel() {
  if (threadIdx.x < 3)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void barrier_or_warp_kernel() {
  if (threadIdx.x < 3)
    __syncthreads();
  else
    __syncwarp();
}
__global__ void half_shuffle_kernel() {
  if (threadIdx.x < 16) __shfl_xor_sync(0xffffffffU, 1, 1);
}
__global__ void outside_mask_kernel() { __syncwarp(0xfffffffeU); }
/// Lane 0 reads lane 16, which is not in the mask.
__global__ void beyond_mask_kernel() {
  if (threadIdx.x < 16) __shfl_sync(0x0000ffffU, 1, 16);
}
/// For blocks of fewer than 32 threads.
__global__ void short_block_kernel() { __syncwarp(); }
__global__ void odd_width_kernel() { __shfl_down_sync(0xffffffffU, 1, 1, 24); }
__global__ void two_widths_kernel() { __shfl_down_sync(0xffffffffU, 1, 1, threadIdx.x == 5 ? 8 : 16); }
/// Two barriers on the same line of different files.
__global__ void two_files_kernel() { host::sync_block(threadIdx.x < 3 ? "here/one.h" : "there/two.h", 7); }
__global__ void throwing_kernel() {
  __syncthreads();
  if (threadIdx.x == 2) throw 2;
  __syncthreads();
}
/// Reads x[count].
__global__ void beyond_global_kernel(int count, const int* x, int* y) {
  y[threadIdx.x] = x[count - static_cast<int>(threadIdx.x)];
}
/// Writes row `rows` of a tile of 4.
__global__ void beyond_shared_kernel(int rows, int* y) {
  LAMINA_SHARED(int[4][4], tile);
  for (int row = 0; row <= rows; ++row) tile[row][threadIdx.x] = row;
  __syncthreads();
  y[threadIdx.x] = tile[0][threadIdx.x];
}

}  // namespace lamina::cuda_host::trial
