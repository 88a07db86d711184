#pragma once
// Sums and other reductions over a warp or a block, in a fixed order.

#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int lanes = 32;  // threads of a warp
constexpr unsigned all_lanes = 0xffffffffU;

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

/// A sum of any number of terms. Partial sums of some terms are added in double, so that the error does not grow with
/// the number of terms.
template <class Number>
class LongSum {
 public:
  __device__ void add(Number term) {
    constexpr int some = 256;
    part_ += term;
    if (++terms_ < some) return;
    all_ += static_cast<double>(part_);
    part_ = 0;
    terms_ = 0;
  }
  __device__ double sum() const { return all_ + static_cast<double>(part_); }

 private:
  Number part_ = 0;
  double all_ = 0;
  int terms_ = 0;
};

/// Reduces over a warp; every lane gets the result. The operation must be commutative. Every thread of the warp calls
/// it.
template <class Operation, class T>
__device__ T reduce_warp(T value, Operation operation) {
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value = operation(value, __shfl_xor_sync(all_lanes, value, distance));
  return value;
}

/// Reduces over a block; every thread gets the result. Every thread of the block calls it.
template <int threads, class Operation, class T>
__device__ T reduce_block(T value, Operation operation) {
  LAMINA_SHARED(T[threads / lanes], parts);
  value = reduce_warp(value, operation);
  if (threadIdx.x % lanes == 0) parts[threadIdx.x / lanes] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < threads / lanes; ++i) value = operation(value, parts[i]);
  __syncthreads();  // the next call may overwrite parts
  return value;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
