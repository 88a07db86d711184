// Copies a recurrent op's tensors to rows and back, and multiplies ids by the input weights.
//
// To rows and back: transposes. Ids: a thread writes one gate of one row, or one element of a one-hot row. dw for ids:
// a block has one id and 128 gates, and walks all rows; the sum has the order of the rows.

#include <algorithm>
#include <cmath>

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/whole_numbers.h"
#include "kernels/moves/moves.h"
#include "recurrent.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int chosen_threads = 128;

/// The images of x as matrices of channels x steps.
template <class T>
Matrices<T> channels_of(const View<T>& x) {
  return {x.data, x.n, x.c, x.h, x.h, x.pitch};
}

/// The rows of x, as matrices of steps x channels.
template <class Row, class T>
Matrices<Row> rows_of(Row* rows, RowOrder order, const View<T>& x) {
  const std::int64_t row = x.c, pitch = order.steps_first ? x.n * row : row;
  return {order.reverse ? rows + (x.h - 1) * pitch : rows,
          x.n,
          x.h,
          x.c,
          order.reverse ? -pitch : pitch,
          order.steps_first ? row : x.h * row};
}

/// The id of a row, or invalid_number.
template <class T>
__device__ int id_of(const RecurrentExtent& extent, View<const T> ids, int vocabulary, std::int64_t row) {
  const int n = static_cast<int>(row / extent.steps), step = static_cast<int>(row % extent.steps);
  return whole_number(ids.at(n, 0)[extent.place(step)], vocabulary);
}

template <class T>
__global__ void recurrent_choose_kernel(RecurrentExtent extent, const T* w, int vocabulary, View<const T> ids,
                                        View<T> gates) {
  for_each_element(gates, [&](int, std::int64_t i) {
    const int j = static_cast<int>(i % gates.w), id = id_of(extent, ids, vocabulary, i / gates.w);
    if (j >= extent.matrices() * extent.hidden) return;
    gates.data[i] = id < 0 ? static_cast<T>(NAN) : w[std::int64_t{j} * vocabulary + id];
  });
}

template <class T>
__global__ void recurrent_one_hot_kernel(View<const T> ids, RowOrder order, View<T> rows) {
  for_each_element(rows, [&](int, std::int64_t i) {
    const std::int64_t row = i / rows.w;
    const int n = static_cast<int>(order.steps_first ? row % ids.n : row / ids.h);
    const int step = static_cast<int>(order.steps_first ? row / ids.n : row % ids.h);
    const int id = whole_number(ids.at(n, 0)[order.reverse ? ids.h - 1 - step : step], rows.w);
    rows.data[i] = id < 0 ? static_cast<T>(NAN) : static_cast<T>(i % rows.w == id ? 1 : 0);
  });
}

template <class T>
__global__ __launch_bounds__(chosen_threads) void recurrent_choose_gradient_kernel(RecurrentExtent extent,
                                                                                   View<const T> ids, int vocabulary,
                                                                                   const T* dgates, T* dw, bool adds) {
  LAMINA_SHARED(int[chosen_threads], chosen);
  const int own_gates = extent.matrices() * extent.hidden, j = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int id = static_cast<int>(blockIdx.x);
  const std::int64_t rows = std::int64_t{extent.images} * extent.steps;
  T sum = 0;
  for (std::int64_t first = 0; first < rows; first += chosen_threads) {
    const std::int64_t own = first + threadIdx.x;
    __syncthreads();
    chosen[threadIdx.x] = own < rows ? id_of(extent, ids, vocabulary, own) : invalid_number;
    __syncthreads();
    for (int i = 0; i < chosen_threads; ++i)
      if (chosen[i] == id && j < own_gates) sum += dgates[(first + i) * 4 * extent.hidden + j];
  }
  if (j < own_gates) put(dw[std::int64_t{j} * vocabulary + id], sum, adds);
}

}  // namespace

template <class T>
void recurrent_to_rows(Stream stream, View<const T> x, RowOrder order, T* rows) {
  transpose(stream, channels_of(x), rows_of(rows, order, x));
}

template <class T>
void recurrent_from_rows(Stream stream, const T* rows, RowOrder order, View<T> x, bool adds) {
  const Matrices<const T> from = rows_of(rows, order, x);
  adds ? transpose<T, T, true>(stream, from, channels_of(x)) : transpose(stream, from, channels_of(x));
}

template <class T>
void recurrent_one_hot(Stream stream, View<const T> ids, RowOrder order, int vocabulary, T* rows) {
  const int count = ids.n * ids.h;
  const View<T> all{rows, 1, 1, count, vocabulary, std::int64_t{count} * vocabulary};
  launch(LAMINA_KERNEL(recurrent_one_hot_kernel<T>), grid_of_elements(all), elements_per_block, 0, stream, ids, order,
         all);
}

template <class T>
void recurrent_choose(Stream stream, const RecurrentExtent& extent, const T* w, int vocabulary, View<const T> ids,
                      T* gates) {
  const int width = 4 * extent.hidden, rows = extent.images * extent.steps;
  const View<T> all{gates, 1, 1, rows, width, std::int64_t{rows} * width};
  launch(LAMINA_KERNEL(recurrent_choose_kernel<T>), grid_of_elements(all), elements_per_block, 0, stream, extent, w,
         vocabulary, ids, all);
}

template <class T>
void recurrent_choose_gradient(Stream stream, const RecurrentExtent& extent, View<const T> ids, int vocabulary,
                               const T* dgates, T* dw, bool adds) {
  const dim3 grid(static_cast<unsigned>(vocabulary),
                  static_cast<unsigned>(divide_up(extent.matrices() * extent.hidden, chosen_threads)));
  launch(LAMINA_KERNEL(recurrent_choose_gradient_kernel<T>), grid, chosen_threads, 0, stream, extent, ids, vocabulary,
         dgates, dw, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                       \
  template void recurrent_to_rows(Stream, View<const T>, RowOrder, T*);                             \
  template void recurrent_from_rows(Stream, const T*, RowOrder, View<T>, bool);                     \
  template void recurrent_one_hot(Stream, View<const T>, RowOrder, int, T*);                        \
  template void recurrent_choose(Stream, const RecurrentExtent&, const T*, int, View<const T>, T*); \
  template void recurrent_choose_gradient(Stream, const RecurrentExtent&, View<const T>, int, const T*, T*, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
