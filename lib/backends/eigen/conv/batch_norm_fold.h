#pragma once
// Batch norm after a convolution in inference: a scale and a bias per filter, made when parameters change.

#include <cstddef>
#include <cstdint>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"

namespace lamina::eigen {

/// The filters of a forward pass, and what is done to the products.
template <class T>
struct Filters {
  const T* w;
  Epilogue<T> epilogue;
};

/// Elements of scale, and as many of bias after them, at the start of prepared memory: whole cache lines.
template <class T>
std::int64_t fold_room(const ConvUnit& c) {
  return c.folded ? round_up(c.y.c, 64 / static_cast<std::int64_t>(sizeof(T))) : 0;
}

/// The parameters themselves or, where a batch norm is folded into them, with what fold() prepared.
template <class T>
Filters<T> filters_of(const ConvUnit& c, const Args& args) {
  const T* const w = args.w[0].as<T>();
  if (!c.folded) return {w, {nullptr, c.op.bias ? args.w[1].as<T>() : nullptr, c.add, c.relu}};
  const T* const prepared = static_cast<const T*>(args.prepared);
  return {w, {prepared, prepared + fold_room<T>(c), c.add, c.relu}};
}

/// scale[k] = norm_scale[k] / sqrt(variance[k] + epsilon) and bias[k] = (conv_bias[k] - mean[k]) * scale[k] + shift[k],
/// computed in double. Parameters and state are the convolution's, then the batch norm's.
template <class T>
void fold(const ConvUnit&, const Args&);

/// Prepares scale and bias, for algorithms that want nothing else prepared.
Lowered::Step fold_step(const ConvUnit&);
std::size_t fold_bytes(const ConvUnit&);

/// Copies the operand of an Add that follows the convolution to y; the convolution is then added to it.
void place_addend(const ConvUnit&, const Args&, ThreadPool&);

}  // namespace lamina::eigen
