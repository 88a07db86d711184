// y[n,k,p,q] += bias[k], then max(y, 0) if requested: one thread for one element, read and written once.
//
// And db[k] = sum over n,p,q of dy, in double: a block for a slice of a channel (channel_sums.h), then, if a
// channel has several slices, a warp for a channel. Per element: one read of dy, and of y if it masks dy.

#include "bias.h"

#include "kernels/common/channel_sums.h"
#include "kernels/common/cut_at_zero.h"
#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void add_bias_kernel(const T* bias, View<T> y, bool relu) {
  const auto plane = static_cast<unsigned>(y.plane());
  for_each_element(y, [&](int n, std::int64_t i) {
    T value = y.at(n, 0)[i];
    if (bias != nullptr) value += bias[static_cast<unsigned>(i) / plane];
    y.at(n, 0)[i] = relu ? cut_at_zero(value) : value;
  });
}

template <class T>
__device__ void put_gradient(T& db, double sum, bool adds) {
  db = static_cast<T>(adds ? sum + static_cast<double>(db) : sum);
}

/// With one slice per channel, db; else the sums of the slices.
template <class T, int width>
__global__ void bias_gradient_sums_kernel(Masked<T> dy, T* db, bool adds, double* partial) {
  const int k = static_cast<int>(blockIdx.x);
  double sum = 0;
  for_each_pack_of_slice<width>(dy.dy.n, dy.dy.plane(), [&](int n, std::int64_t i) {
    const Pack<T, width> pack = load_pack<width>(dy.dy.at(n, k) + i);
    if (dy.mask.data == nullptr) {
      for (const T value : pack.v) sum += static_cast<double>(value);
    } else {
      const Pack<T, width> mask = load_pack<width>(dy.mask.at(n, k) + i);
      for (int j = 0; j < width; ++j) sum += mask.v[j] > T(0) ? static_cast<double>(pack.v[j]) : 0.0;
    }
  });
  sum = reduce_block<sum_threads>(sum, Plus());
  if (threadIdx.x != 0) return;
  if (gridDim.y == 1)
    put_gradient(db[k], sum, adds);
  else
    partial[std::int64_t{k} * gridDim.y + blockIdx.y] = sum;
}

template <class T>
__global__ void bias_gradient_kernel(const double* partial, int slices, T* db, bool adds) {
  const int k = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < slices; i += lanes) sum += partial[std::int64_t{k} * slices + i];
  sum = reduce_warp(sum, Plus());
  if (threadIdx.x == 0) put_gradient(db[k], sum, adds);
}

}  // namespace

template <class T>
void add_bias(Stream stream, const T* bias, View<T> y, bool relu) {
  launch(LAMINA_KERNEL(add_bias_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, bias, y, relu);
}

std::size_t bias_gradient_bytes(int channels, std::int64_t count) {
  const int slices = slices_of(channels, count);
  return slices == 1 ? 0 : static_cast<std::size_t>(channels) * static_cast<std::size_t>(slices) * sizeof(double);
}

template <class T>
void bias_gradient(Stream stream, const Masked<T>& dy, T* db, bool adds, void* partial) {
  auto* const sums = static_cast<double*>(partial);
  const std::int64_t count = dy.dy.n * dy.dy.plane();
  const dim3 grid = grid_of_slices(dy.dy.c, count);
  if (packs_of_planes(dy.dy) == 1 || (dy.mask.data != nullptr && packs_of_planes(dy.mask) == 1))
    launch(LAMINA_KERNEL(bias_gradient_sums_kernel<T, 1>), grid, sum_threads, 0, stream, dy, db, adds, sums);
  else
    launch(LAMINA_KERNEL(bias_gradient_sums_kernel<T, widest<T>>), grid, sum_threads, 0, stream, dy, db, adds, sums);
  const int slices = slices_of(dy.dy.c, count);
  if (slices > 1)
    launch(LAMINA_KERNEL(bias_gradient_kernel<T>), static_cast<unsigned>(dy.dy.c), lanes, 0, stream, sums, slices, db,
           adds);
}

template void add_bias(Stream, const float*, View<float>, bool);
template void add_bias(Stream, const double*, View<double>, bool);
template void bias_gradient(Stream, const Masked<float>&, float*, bool, void*);
template void bias_gradient(Stream, const Masked<double>&, double*, bool, void*);

}  // namespace lamina::LAMINA_CUDA_SPACE
