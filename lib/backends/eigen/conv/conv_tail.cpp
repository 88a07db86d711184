// The tail of a convolution: a batch norm folded into a scale and a bias, and the addend.

#include "conv_tail.h"

#include <cmath>
#include <cstring>

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

template <class T>
void fold(const ConvUnit& c, const Args& args) {
  const std::size_t norm = c.op.bias ? 2 : 1;  // the batch norm's first parameter
  const T *const norm_scale = args.w[norm].as<T>(), *const shift = args.w[norm + 1].as<T>();
  const T *const mean = args.state[0].as<T>(), *const variance = args.state[1].as<T>();
  T* const scale = static_cast<T*>(args.prepared);
  T* const bias = scale + fold_room<T>(c);
  for (int k = 0; k < c.y.c; ++k) {
    const double factor = static_cast<double>(norm_scale[k]) / std::sqrt(static_cast<double>(variance[k]) + c.epsilon);
    const double before = c.op.bias ? static_cast<double>(args.w[1].as<T>()[k]) : 0.0;
    scale[k] = static_cast<T>(factor);
    bias[k] = static_cast<T>((before - static_cast<double>(mean[k])) * factor + static_cast<double>(shift[k]));
  }
}

template void fold<float>(const ConvUnit&, const Args&);
template void fold<double>(const ConvUnit&, const Args&);

Lowered::Step fold_step(const ConvUnit& c) {
  return with_type(
      c.dtype, [&]<class T>() { return step({Pass::prepare}, "fold", [c](const Args& args) { fold<T>(c, args); }); });
}

std::size_t fold_bytes(const ConvUnit& c) {
  return with_type(c.dtype, [&]<class T>() { return static_cast<std::size_t>(2 * fold_room<T>(c)) * sizeof(T); });
}

void place_addend(const ConvUnit& c, const Args& args, ThreadPool& pool) {
  if (!c.add || same_place(args.x[1], args.y)) return;
  const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
  split_images(pool, c.y, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const auto place = [&](const Tensor& t) { return t.as<std::byte>() + (n * t.pitch + first) * size; };
    std::memcpy(place(args.y), place(args.x[1]), static_cast<std::size_t>((last - first) * size));
  });
}

}  // namespace lamina::eigen
