// Embedding: rows of a table as the channels of places.
//
// Forward: a thread per element of y; per element two reads (ids come from a cache) and one write.
//
// Backward, without atomics: (1) places are sorted by their rows; places of one row stay in order. A block sorts 256 of
// them: a thread per place counts the places that come before its own. Then runs are merged in pairs, again and again:
// a thread per place finds by bisection how many places of the other run come before it. For 13,000 places there are
// 256 comparisons per place and 6 merges. (2) zeros, unless dtable is added to. (3) sums: a block per first place of a
// row has threads for 64 features times 4 parts of the row's places; the parts are added in order. Per element of dy
// one read, of dtable one or two writes.

#include "embedding.h"

#include <limits>
#include <utility>

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/whole_numbers.h"
#include "kernels/moves/moves.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int sort_threads = 256;
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

/// The row of a place of the batch. An invalid id gives a row after all others.
template <class T>
__device__ int row_of(const View<const T>& ids, int plane, int rows, int place) {
  const int n = place / plane;
  const int row = whole_number(ids.at(n, 0)[place - n * plane], rows);
  return row < 0 ? rows : row;
}

/// The index of the first element of [first, last) whose row is not below `row`; with `after`, whose row is above it.
__device__ int bound_of(const PlaceOfRow* sorted, int first, int last, int row, bool after) {
  while (first < last) {
    const int middle = first + (last - first) / 2;
    if (sorted[middle].row < row || (after && sorted[middle].row == row))
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

/// Sorts runs of sort_threads places each.
template <class T>
__global__ void embedding_sort_kernel(View<const T> ids, int rows, PlaceOfRow* sorted) {
  LAMINA_SHARED(int[sort_threads], others);
  const int plane = static_cast<int>(ids.plane()), all = ids.n * plane, thread = static_cast<int>(threadIdx.x);
  for (int first = static_cast<int>(blockIdx.x) * sort_threads; first < all;) {
    const int count = sort_threads < all - first ? sort_threads : all - first;
    const int row = thread < count ? row_of(ids, plane, rows, first + thread) : rows;
    others[thread] = row;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < count; ++i) before += others[i] < row || (others[i] == row && i < thread) ? 1 : 0;
    if (thread < count) sorted[first + before] = {row, first + thread};
    __syncthreads();
    const int step = static_cast<int>(gridDim.x) * sort_threads;
    first = step < all - first ? first + step : all;
  }
}

/// Merges pairs of sorted runs of `length` places into runs of twice that length. The last run may be shorter.
__global__ void embedding_merge_kernel(const PlaceOfRow* from, std::int64_t length, int all, PlaceOfRow* to) {
  for_each_pack<1>(Extent{1, all}, [&](int, std::int64_t i) {
    const std::int64_t first = i / (2 * length) * (2 * length), second = min(first + length, std::int64_t{all});
    const PlaceOfRow own = from[i];
    const bool is_second = i >= second;
    const std::int64_t begin = is_second ? first : second,
                       end = is_second ? second : min(second + length, std::int64_t{all});
    const int bound = bound_of(from, static_cast<int>(begin), static_cast<int>(end), own.row, is_second);
    to[first + (i - (is_second ? second : first)) + (bound - begin)] = own;
  });
}

template <class T>
__global__ void embedding_sum_kernel(View<const T> dy, const PlaceOfRow* sorted, int all, T* dtable, int rows,
                                     bool adds) {
  LAMINA_SHARED(T[sum_parts][sum_features], parts);
  const int plane = static_cast<int>(dy.plane());
  const int lane = static_cast<int>(threadIdx.x), part = static_cast<int>(threadIdx.y);
  for (int position = static_cast<int>(blockIdx.x); position < all;) {
    const int row = sorted[position].row;
    const bool sums = row < rows && (position == 0 || sorted[position - 1].row != row);  // the same for all threads
    const int last = sums ? bound_of(sorted, position, all, row, true) : position;
    for (int first = 0; sums && first < dy.c; first += sum_features) {
      const int feature = first + lane;
      T sum = 0;
      for (int i = position + part; i < last && feature < dy.c; i += sum_parts) {
        const int place = sorted[i].place, n = place / plane;
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
  const auto all = static_cast<int>(ids.count());
  PlaceOfRow *sorted = places, *other = places + all;
  launch(LAMINA_KERNEL(embedding_sort_kernel<T>), blocks_for(all, sort_threads), sort_threads, 0, stream, ids, rows,
         sorted);
  for (std::int64_t length = sort_threads; length < all; length *= 2, std::swap(sorted, other))
    launch(LAMINA_KERNEL(embedding_merge_kernel), blocks_for(all, pack_threads), pack_threads, 0, stream, sorted,
           length, all, other);
  if (!adds) fill(stream, View<T>{dtable, 1, 1, rows, dy.c, std::int64_t{rows} * dy.c}, T(0));
  launch(LAMINA_KERNEL(embedding_sum_kernel<T>), blocks_for(all, 1), dim3(sum_features, sum_parts), 0, stream, dy,
         sorted, all, dtable, rows, adds);
}

#define LAMINA_INSTANTIATE(T)                                                     \
  template void embedding_forward(Stream, View<const T>, const T*, int, View<T>); \
  template void embedding_backward(Stream, View<const T>, View<const T>, PlaceOfRow*, T*, int, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
