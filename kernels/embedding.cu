// Embedding: rows of a table as the channels of places.
//
// Forward: a thread per element of y; per element two reads, those of ids from a cache, and one write.
//
// Backward, without atomics: (1) ranks. Blocks of 256 threads, a thread per place; it compares its id with all others,
// 256 of them in shared memory at a time, and so finds its position in the order of rows, then places, and how often
// its row occurs: (places)^2 comparisons, 0.2 10^9 for a batch of 32 texts of 400 words. (2) zeros, unless dtable is
// added to. (3) sums: a block per first place of a row, 64 features times 4 parts of its places; the parts are added in
// order. Per element of dy one read, of dtable one or two writes.

#include "embedding.h"

#include <limits>

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/whole_numbers.h"
#include "kernels/moves/fill.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int rank_threads = 256;
constexpr int sum_features = 64, sum_parts = 4;

template <class T>
__global__ void embedding_forward_kernel(View<const T> ids, const T* table, int rows, View<T> y) {
  const auto plane = static_cast<unsigned>(y.plane());
  for_each_element(y, [&](int n, std::int64_t element) {
    const auto i = static_cast<unsigned>(element), feature = i / plane;
    const int row = whole_number(ids.at(n, 0)[i - feature * plane], rows);
    y.at(n, 0)[element] = row < 0 ? std::numeric_limits<T>::quiet_NaN() : table[std::int64_t{row} * y.c + feature];
  });
}

/// The row of a place of the batch; for an invalid id one that is after all others.
template <class T>
__device__ int row_of(const View<const T>& ids, int plane, int rows, int place) {
  const int n = place / plane;
  const int row = whole_number(ids.at(n, 0)[place - n * plane], rows);
  return row < 0 ? rows : row;
}

template <class T>
__global__ void embedding_rank_kernel(View<const T> ids, int rows, PlaceOfRow* places) {
  LAMINA_SHARED(int[rank_threads], others);
  const int plane = static_cast<int>(ids.plane()), all = ids.n * plane;
  const int thread = static_cast<int>(threadIdx.x);
  for (int first = static_cast<int>(blockIdx.x) * rank_threads; first < all;) {
    const int place = first + thread < all ? first + thread : all - 1;
    const int row = row_of(ids, plane, rows, place);
    int before = 0, alike_before = 0, alike = 0;
    for (int from = 0; from < all; from += rank_threads < all - from ? rank_threads : all - from) {
      const int tile = rank_threads < all - from ? rank_threads : all - from;
      if (thread < tile) others[thread] = row_of(ids, plane, rows, from + thread);
      __syncthreads();
      for (int i = 0; i < tile; ++i) {
        before += others[i] < row ? 1 : 0;
        const bool same = others[i] == row;
        alike += same ? 1 : 0;
        alike_before += same && from + i < place ? 1 : 0;
      }
      __syncthreads();
    }
    if (first + thread < all) places[before + alike_before] = {place, alike_before == 0 && row < rows ? alike : 0};
    const int step = static_cast<int>(gridDim.x) * rank_threads;
    first = step < all - first ? first + step : all;
  }
}

template <class T>
__global__ void embedding_sum_kernel(View<const T> ids, View<const T> dy, const PlaceOfRow* places, T* dtable, int rows,
                                     bool adds) {
  LAMINA_SHARED(T[sum_parts][sum_features], parts);
  const int plane = static_cast<int>(ids.plane()), all = ids.n * plane;
  const int lane = static_cast<int>(threadIdx.x), part = static_cast<int>(threadIdx.y);
  for (int position = static_cast<int>(blockIdx.x); position < all;) {
    const PlaceOfRow head = places[position];
    const int row = head.count == 0 ? 0 : row_of(ids, plane, rows, head.place);
    for (int first = 0; head.count > 0 && first < dy.c; first += sum_features) {  // the same for all threads
      const int feature = first + lane;
      T sum = 0;
      for (int i = part; i < head.count && feature < dy.c; i += sum_parts) {
        const int place = places[position + i].place, n = place / plane;
        sum += dy.at(n, feature)[place - n * plane];
      }
      parts[part][lane] = sum;
      __syncthreads();
      if (part == 0 && feature < dy.c) {
        for (int i = 1; i < sum_parts; ++i) sum += parts[i][lane];
        put(dtable[std::int64_t{row} * dy.c + feature], sum, adds);
      }
      __syncthreads();
    }
    position = static_cast<int>(gridDim.x) < all - position ? position + static_cast<int>(gridDim.x) : all;
  }
}

}  // namespace

template <class T>
void embedding_forward(Stream stream, View<const T> ids, const T* table, int rows, View<T> y) {
  launch(LAMINA_KERNEL(embedding_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, ids, table,
         rows, y);
}

template <class T>
void embedding_backward(Stream stream, View<const T> ids, View<const T> dy, PlaceOfRow* places, T* dtable, int rows,
                        bool adds) {
  const std::int64_t all = ids.count();
  launch(LAMINA_KERNEL(embedding_rank_kernel<T>), blocks_for(all, rank_threads), rank_threads, 0, stream, ids, rows,
         places);
  if (!adds) fill(stream, View<T>{dtable, 1, 1, rows, dy.c, std::int64_t{rows} * dy.c}, T(0));
  launch(LAMINA_KERNEL(embedding_sum_kernel<T>), blocks_for(all, 1), dim3(sum_features, sum_parts), 0, stream, ids, dy,
         places, dtable, rows, adds);
}

template void embedding_forward(Stream, View<const float>, const float*, int, View<float>);
template void embedding_forward(Stream, View<const double>, const double*, int, View<double>);
template void embedding_backward(Stream, View<const float>, View<const float>, PlaceOfRow*, float*, int, bool);
template void embedding_backward(Stream, View<const double>, View<const double>, PlaceOfRow*, double*, int, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
