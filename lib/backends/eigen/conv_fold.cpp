// Batch norm folded into the filters and bias of the convolution before it.

#include "conv_fold.h"

#include <cmath>
#include <cstring>

#include "elements.h"

namespace lamina::eigen {

template <class T>
void fold(const ConvProblem& c, const Args& args, T* w, T* bias, Pool& pool) {
  const std::size_t norm = c.conv_bias ? 2 : 1;  // the batch norm's first parameter
  const T *const scale = args.w[norm].as<T>(), *const shift = args.w[norm + 1].as<T>();
  const T *const mean = args.state[0].as<T>(), *const variance = args.state[1].as<T>();
  const std::int64_t size = c.weights() / c.y.c;
  pool.split(c.y.c, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      const double factor = static_cast<double>(scale[k]) / std::sqrt(static_cast<double>(variance[k]) + c.epsilon);
      const double before = c.conv_bias ? static_cast<double>(args.w[1].as<T>()[k]) : 0.0;
      bias[k] = static_cast<T>((before - static_cast<double>(mean[k])) * factor + static_cast<double>(shift[k]));
      const T* const from = args.w[0].as<T>() + k * size;
      for (std::int64_t i = 0; i < size; ++i) w[k * size + i] = static_cast<T>(static_cast<double>(from[i]) * factor);
    }
  });
}

template void fold<float>(const ConvProblem&, const Args&, float*, float*, Pool&);
template void fold<double>(const ConvProblem&, const Args&, double*, double*, Pool&);

Lowered::Step fold_step(const ConvProblem& c, const std::string& algorithm, DType dtype, const Context& context) {
  return with_type(dtype, [&]<class T>() {
    return step({Pass::prepare}, algorithm, [c, &pool = context.pool](const Args& args) {
      T* const bias = static_cast<T*>(args.prepared);
      fold(c, args, bias + bias_room<T>(c), bias, pool);
    });
  });
}

std::size_t fold_bytes(const ConvProblem& c, DType dtype) {
  return with_type(dtype,
                   [&]<class T>() { return static_cast<std::size_t>(bias_room<T>(c) + c.weights()) * sizeof(T); });
}

void place_addend(const ConvProblem& c, const Args& args, Pool& pool) {
  if (!c.add_y || same_place(args.x[1], args.y)) return;
  with_type(args.y.dtype, [&]<class T>() {
    split_images(pool, c.y, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
      std::memcpy(image<T>(args.y, n) + first, image<const T>(args.x[1], n) + first,
                  static_cast<std::size_t>(last - first) * sizeof(T));
    });
  });
}

}  // namespace lamina::eigen
