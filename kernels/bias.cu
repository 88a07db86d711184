// y[n,k,p,q] += bias[k], then max(y, 0) if requested: one thread for one element, read and written once.
//
// Also db[k] = sum over n,p,q of dy, in double: a block sums a slice of a channel (channel_sums.h); if a channel has
// several slices, a warp adds their sums. Per element: one read of dy, and one of y if y masks dy.
//
// If channels are neighbours in memory (nhwc), a block sums a slice of the rows, for as many channels as a warp has
// lanes; a warp reads a row. A thread reads the bias of a pack of channels once, and adds it to that pack in many rows.

#include "bias.h"

#include "kernels/common/channel_sums.h"
#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/elements.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void add_bias_kernel(const Computed<T>* bias, View<T> y, bool relu) {
  const auto plane = static_cast<unsigned>(y.plane());
  for_each_element(y, [&](int n, std::int64_t i) {
    T& place = y.at(n, 0)[i];
    Computed<T> value = load(place);
    if (bias != nullptr) value += bias[static_cast<unsigned>(i) / plane];
    store(place, relu ? clamp_at_zero(value) : value);
  });
}

template <class T, int width>
__global__ void add_bias_rows_kernel(const float* bias, View<T> y, int threads_of_row, bool relu) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int k = (static_cast<int>(blockIdx.y) * threads_of_row + thread % threads_of_row) * width;
  if (k >= y.c) return;
  Loaded<T, width> added;
  for (int j = 0; j < width; ++j) added.v[j] = bias[k + j];
  const int rows = pack_threads / threads_of_row;  // rows that a block reads at once
  for (std::int64_t n = std::int64_t{blockIdx.x} * rows + thread / threads_of_row; n < y.n;
       n += std::int64_t{gridDim.x} * rows) {
    Loaded<T, width> sum = load_pack<width>(static_cast<const T*>(y.data + n * y.pitch + k));
    for (int j = 0; j < width; ++j) sum.v[j] = relu ? clamp_at_zero(sum.v[j] + added.v[j]) : sum.v[j] + added.v[j];
    store_pack(y.data + n * y.pitch + k, sum);
  }
}

template <class T>
__device__ void put_gradient(T& db, double sum, bool adds) {
  db = static_cast<T>(adds ? sum + static_cast<double>(db) : sum);
}

/// Writes db if a channel has one slice, else the sums of the slices.
template <class T, int width>
__global__ void bias_gradient_sums_kernel(Masked<T> dy, Computed<T>* db, bool adds, double* partial) {
  const int k = static_cast<int>(blockIdx.x);
  double sum = 0;
  for_each_pack_of_slice<width>(dy.dy.n, dy.dy.plane(), [&](int n, std::int64_t i) {
    const auto pack = load_pack<width>(dy.dy.at(n, k) + i);
    if (dy.mask.data == nullptr) {
      for (const auto value : pack.v) sum += static_cast<double>(value);
    } else {
      const auto mask = load_pack<width>(dy.mask.at(n, k) + i);
      for (int j = 0; j < width; ++j) sum += mask.v[j] > 0 ? static_cast<double>(pack.v[j]) : 0.0;
    }
  });
  sum = reduce_block<sum_threads>(sum, Plus());
  if (threadIdx.x != 0) return;
  if (gridDim.y == 1)
    put_gradient(db[k], sum, adds);
  else
    partial[std::int64_t{k} * gridDim.y + blockIdx.y] = sum;
}

constexpr int row_warps = sum_threads / lanes;

template <class T>
__global__ void bias_gradient_rows_kernel(View<const T> dy, double* partial) {
  LAMINA_SHARED(double[row_warps][lanes], sums);
  const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes;
  const int k = static_cast<int>(blockIdx.x) * lanes + lane;
  const auto last = static_cast<int>(std::int64_t{dy.n} * (blockIdx.y + 1) / gridDim.y);
  double sum = 0;
  if (k < dy.c)
    for (int n = static_cast<int>(std::int64_t{dy.n} * blockIdx.y / gridDim.y) + warp; n < last; n += row_warps)
      sum += static_cast<double>(load(*dy.at(n, k)));
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || k >= dy.c) return;
  for (int i = 1; i < row_warps; ++i) sum += sums[i][lane];
  partial[std::int64_t{k} * gridDim.y + blockIdx.y] = sum;
}

/// Blocks for one warp's channels: enough to fill a large device, but at least 256 rows per block.
int slices_of_rows(int channels, std::int64_t rows) {
  constexpr std::int64_t blocks = 4 * large_device, least = 256;
  const std::int64_t most = std::min(blocks / divide_up(channels, lanes), rows / least);
  return static_cast<int>(std::clamp<std::int64_t>(most, 1, blocks));
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
void add_bias(Stream stream, const Computed<T>* bias, View<T> y, bool relu) {
  launch(LAMINA_KERNEL(add_bias_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, bias, y, relu);
}

template <class T>
void add_bias_to_rows(Stream stream, const float* bias, View<T> y, bool relu) {
  packing_of<T>(false, y).with_width([&](auto w, Extent) {
    constexpr int width = decltype(w)::value;
    const int packs = y.c / width;
    int threads_of_row = 1;
    while (threads_of_row < std::min(packs, pack_threads)) threads_of_row *= 2;
    constexpr std::int64_t most = 16 * large_device;
    const auto blocks = std::min<std::int64_t>(divide_up(y.n, pack_threads / threads_of_row), most);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(divide_up(packs, threads_of_row)));
    launch(LAMINA_KERNEL(add_bias_rows_kernel<T, width>), grid, pack_threads, 0, stream, bias, y, threads_of_row, relu);
  });
}

std::size_t bias_gradient_bytes(int channels, std::int64_t count) {
  const int slices = slices_of(channels, count);
  return slices == 1 ? 0 : static_cast<std::size_t>(channels) * static_cast<std::size_t>(slices) * sizeof(double);
}

template <class T>
void bias_gradient(Stream stream, const Masked<T>& dy, Computed<T>* db, bool adds, void* partial) {
  auto* const sums = static_cast<double*>(partial);
  const std::int64_t count = dy.dy.n * dy.dy.plane();
  const dim3 grid = grid_of_slices(dy.dy.c, count);
  with_packs_of_planes<T>(
      [&](auto width) {
        launch(LAMINA_KERNEL(bias_gradient_sums_kernel<T, width()>), grid, sum_threads, 0, stream, dy, db, adds, sums);
      },
      dy.dy, dy.mask);
  const int slices = slices_of(dy.dy.c, count);
  if (slices > 1)
    launch(LAMINA_KERNEL(bias_gradient_kernel<Computed<T>>), static_cast<unsigned>(dy.dy.c), lanes, 0, stream, sums,
           slices, db, adds);
}

std::size_t bias_gradient_of_rows_bytes(int channels, std::int64_t rows) {
  return static_cast<std::size_t>(channels) * static_cast<std::size_t>(slices_of_rows(channels, rows)) * sizeof(double);
}

template <class T>
void bias_gradient_of_rows(Stream stream, View<const T> dy, float* db, bool adds, void* partial) {
  auto* const sums = static_cast<double*>(partial);
  const int slices = slices_of_rows(dy.c, dy.n);
  const dim3 grid(static_cast<unsigned>(divide_up(dy.c, lanes)), static_cast<unsigned>(slices));
  launch(LAMINA_KERNEL(bias_gradient_rows_kernel<T>), grid, sum_threads, 0, stream, dy, sums);
  launch(LAMINA_KERNEL(bias_gradient_kernel<float>), static_cast<unsigned>(dy.c), lanes, 0, stream, sums, slices, db,
         adds);
}

#define LAMINA_INSTANTIATE(T)                                        \
  template void add_bias(Stream, const Computed<T>*, View<T>, bool); \
  template void bias_gradient(Stream, const Masked<T>&, Computed<T>*, bool, void*);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)
#define LAMINA_INSTANTIATE_HALVES(T)                                   \
  template void add_bias_to_rows(Stream, const float*, View<T>, bool); \
  template void bias_gradient_of_rows(Stream, View<const T>, float*, bool, void*);
LAMINA_FOR_HALVES(LAMINA_INSTANTIATE_HALVES)

}  // namespace lamina::LAMINA_CUDA_SPACE
