// The sums of a weight gradient's ranges, added in order: a thread for a pack of results.

#include "add_ranges.h"

#include "packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void add_ranges_kernel(const T* partial, int ranges, Extent results, T* to, bool adds) {
  for_each_pack<width>(results, [&](int, std::int64_t i) {
    const T* from = partial + i;
    Pack<T, width> sum = load_pack<width>(from);
    for (int range = 1; range < ranges; ++range) {
      from += results.size;
      const Pack<T, width> next = load_pack<width>(from);
      for (int k = 0; k < width; ++k) sum.v[k] += next.v[k];
    }
    put_pack(to + i, sum, adds);
  });
}

}  // namespace

template <class T>
void add_ranges(Stream stream, const T* partial, int ranges, std::int64_t count, T* to, bool adds) {
  const Extent results{1, count};
  const bool packs = count % widest<T> == 0 && reinterpret_cast<std::uintptr_t>(partial) % 16 == 0 &&
                     reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
  const auto start = [&](void (*kernel)(const T*, int, Extent, T*, bool), int width) {
    launch(kernel, "add_ranges_kernel", grid_of_packs(results, width), pack_threads, 0, stream, partial, ranges,
           results, to, adds);
  };
  packs ? start(add_ranges_kernel<T, widest<T>>, widest<T>) : start(add_ranges_kernel<T, 1>, 1);
}

template void add_ranges(Stream, const float*, int, std::int64_t, float*, bool);
template void add_ranges(Stream, const double*, int, std::int64_t, double*, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
