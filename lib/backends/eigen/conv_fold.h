#pragma once
// Batch norm in front of inference: folded into the filters and bias of the convolution before it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "conv.h"
#include "gemm.h"

namespace lamina::eigen {

/// What a forward pass multiplies with and adds.
template <class T>
struct Filters {
  const T* w;
  const T* bias;  ///< null where there is none
};

/// Elements of the bias in prepared memory, rounded up to a cache line; the prepared filters stand behind it.
template <class T>
std::int64_t bias_room(const ConvProblem& c) {
  return c.folded ? round_up(c.y.c, 64 / static_cast<std::int64_t>(sizeof(T))) : 0;
}

/// The parameters themselves or, where a batch norm is folded into them, what fold() prepared.
template <class T>
Filters<T> filters_of(const ConvProblem& c, const Args& args) {
  if (!c.folded) return {args.w[0].as<T>(), c.op.bias ? args.w[1].as<T>() : nullptr};
  const T* const bias = static_cast<const T*>(args.prepared);
  return {bias + bias_room<T>(c), bias};
}

/// w[k] * f[k] and (bias[k] - mean[k]) * f[k] + shift[k], where f = scale / sqrt(variance + epsilon): computed in
/// double, rounded once. Parameters and state are the convolution's, then the batch norm's.
template <class T>
void fold(const ConvProblem&, const Args&, T* w, T* bias, Pool&);

/// Prepares folded filters for an algorithm that reads them as they are.
Lowered::Step fold_step(const ConvProblem&, const std::string& algorithm, DType, const Context&);
std::size_t fold_bytes(const ConvProblem&, DType);

/// Puts the operand of an Add behind the convolution into y, to which the convolution is then added.
void place_addend(const ConvProblem&, const Args&, Pool&);

}  // namespace lamina::eigen
