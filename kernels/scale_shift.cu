// ScaleShift: y = scale x + shift, and its gradient dx = scale dy, which is the same without a shift.
//
// A thread computes one pack of 16 bytes, image by image along the grid's y. Per element: one read and one write.

#include "scale_shift.h"

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void scale_shift_kernel(Extent extent, ScaleAndShift<T> by, Images<const T> x, Images<T> y, bool adds) {
  const auto run = static_cast<unsigned>(by.run);
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(x.at(n) + i);
    for (int k = 0; k < width; ++k) {
      const unsigned at = (static_cast<unsigned>(i) + static_cast<unsigned>(k)) / run;
      pack.v[k] = by.shift == nullptr ? by.scale[at] * pack.v[k] : by.scale[at] * pack.v[k] + by.shift[at];
    }
    put_pack(y.at(n) + i, pack, adds);
  });
}

}  // namespace

template <class T>
void scale_shift(Stream stream, const ScaleAndShift<T>& by, View<const T> x, View<T> y, bool adds) {
  with_packs<T>(
      false,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(scale_shift_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream,
               extent, by, x, y, adds);
      },
      y, x);
}

template void scale_shift(Stream, const ScaleAndShift<float>&, View<const float>, View<float>, bool);
template void scale_shift(Stream, const ScaleAndShift<double>&, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
