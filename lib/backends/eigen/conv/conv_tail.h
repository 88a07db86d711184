#pragma once
// The tail of a forward pass, applied to its sums: a bias, then an addend, then a function. A batch norm in inference
// is a scale and a bias for each filter, which are made when parameters change.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/pointwise/activation.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

/// Number of elements, in whole cache lines, that the scale takes at the start of prepared memory. The bias follows it
/// and takes as many.
template <class T>
std::int64_t fold_room(const ConvUnit& c) {
  return c.folded ? round_up(c.y.c, 64 / static_cast<std::int64_t>(sizeof(T))) : 0;
}

/// Number of elements of scale and bias at the start of prepared memory.
template <class T>
std::int64_t fold_elements(const ConvUnit& c) {
  return 2 * fold_room<T>(c);
}

/// The function that a forward pass applies to its results. A ReLU and a clip are bounds.
template <class T>
struct ConvTail {
  std::optional<Bounds<T>> bounds;
  std::shared_ptr<const Activation<T>> activation;  ///< function other than a ReLU or a clip; null: none

  ConvTail(const ConvUnit& c, const InstructionSet& set) {
    if (c.relu) bounds = Bounds<T>{T{0}, std::numeric_limits<T>::infinity()};
    if (!c.activation) return;
    if (c.activation->function == Function::clip) {
      bounds = Bounds<T>{static_cast<T>(c.activation->a), static_cast<T>(c.activation->b)};
    } else {
      activation = eigen::activation<T>(*c.activation, set);
    }
  }
};

/// The epilogue of the sums of a forward pass. With a folded batch norm, fold() has prepared scale and bias.
template <class T>
Epilogue<T> epilogue_of(const ConvUnit& c, const Args& args, const ConvTail<T>& tail) {
  const T* const prepared = static_cast<const T*>(args.prepared);
  return {.scale = c.folded ? prepared : nullptr,
          .bias = c.folded    ? prepared + fold_room<T>(c)
                  : c.op.bias ? args.w[1].as<T>()
                              : nullptr,
          .add = c.add,
          .bounds = tail.bounds ? &*tail.bounds : nullptr,
          .activation = tail.activation.get()};
}

/// scale[k] = norm_scale[k] / sqrt(variance[k] + epsilon) and bias[k] = (conv_bias[k] - mean[k]) * scale[k] + shift[k],
/// computed in double. Parameters and state of the convolution come first, then those of the batch norm.
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

/// If an Add follows the convolution, copies its other operand to y. The convolution is then added to y.
inline void place_addend(const ConvUnit& c, const Args& args, ThreadPool& pool) {
  if (!c.add || same_place(args.x[1], args.y)) return;
  const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
  split_images(pool, c.y, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const auto place = [&](const Tensor& t) { return t.as<std::byte>() + (n * t.pitch + first) * size; };
    std::memcpy(place(args.y), place(args.x[1]), static_cast<std::size_t>((last - first) * size));
  });
}

}  // namespace lamina::eigen
