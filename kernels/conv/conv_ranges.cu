// Adds the sums of all ranges in order. One thread adds a pack of results if they are contiguous in every range and in
// the output, else one result. Per result: one read for each range, one write.

#include "conv_ranges.h"

#include "kernels/common/fast_divide.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// `range` is the first range.
template <class T, int width>
__global__ void conv_add_ranges_kernel(ConvRanges<T> all, View<const T> range, FastDivide by_columns,
                                       FastDivide by_rows) {
  for_each_pack<width>(Extent{range.n, range.image()}, [&](int n, std::int64_t i) {
    const Divided row = divide(static_cast<unsigned>(i), by_columns);
    const Divided channel = divide(row.quotient, by_rows);
    const auto number = static_cast<int>(channel.quotient);
    const T* from = range.at(n, 0) + i;
    Pack<T, width> sum{};
    for (int made = 0; made < all.ranges; ++made, from += range.count()) {
      const Pack<T, width> one = load_pack<width>(from);
      for (int k = 0; k < width; ++k) sum.v[k] += one.v[k];
    }
    if (all.bias != nullptr) {
      const T bias = all.bias[number];
      for (int k = 0; k < width; ++k) sum.v[k] += bias;
    }
    const std::int64_t out_row = static_cast<int>(channel.remainder) * all.step_h + all.base_h;
    const int out_column = static_cast<int>(row.remainder) * all.step_w + all.base_w;
    put_pack(all.out.at(n, number) + out_row * all.out.w + out_column, sum, all.adds, all.relu);
  });
}

}  // namespace

template <class T>
void conv_add_ranges(Stream stream, const ConvRanges<T>& all) {
  const View<T>& out = all.out;
  const View<const T> range{all.partial, out.n,       out.c,
                            all.rows,    all.columns, std::int64_t{out.c} * all.rows * all.columns};
  const auto aligned = [](const T* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  const bool same_planes = all.step_h == 1 && all.step_w == 1 && all.rows == out.h && all.columns == out.w;
  const bool packs = same_planes && out.plane() % widest<T> == 0 && out.pitch % widest<T> == 0 && aligned(out.data) &&
                     aligned(all.partial);
  const auto start = [&](void (*kernel)(ConvRanges<T>, View<const T>, FastDivide, FastDivide), int width) {
    launch(kernel, "conv_add_ranges_kernel", grid_of_packs({range.n, range.image()}, width), pack_threads, 0, stream,
           all, range, FastDivide(all.columns), FastDivide(all.rows));
  };
  packs ? start(conv_add_ranges_kernel<T, widest<T>>, widest<T>) : start(conv_add_ranges_kernel<T, 1>, 1);
}

template <class T>
void conv_add_weight_ranges(Stream stream, const T* partial, int ranges, int groups, int weights, T* dw, bool adds) {
  if (ranges == 1) return;
  ConvRanges<T> all;
  all.partial = partial;
  all.ranges = ranges;
  all.columns = weights;
  all.out = {dw, groups, 1, 1, weights, weights};
  all.adds = adds;
  conv_add_ranges(stream, all);
}

#define LAMINA_INSTANTIATE(T)                                  \
  template void conv_add_ranges(Stream, const ConvRanges<T>&); \
  template void conv_add_weight_ranges(Stream, const T*, int, int, int, T*, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
