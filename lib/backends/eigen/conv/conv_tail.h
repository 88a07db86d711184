#pragma once
// The tail of a forward pass, applied to its sums: a bias, then an addend, then a function. A batch norm in inference
// is a scale and a bias for each filter, which are made when parameters change.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/pointwise/activation.h"

namespace lamina::eigen {

/// The filters of a forward pass, and the last step of their sums.
template <class T>
struct Filters {
  const T* w;
  Epilogue<T> epilogue;
};

/// The number of elements that the scale takes at the start of prepared memory: whole cache lines. The bias follows and
/// takes as many.
template <class T>
std::int64_t fold_room(const ConvUnit& c) {
  return c.folded ? round_up(c.y.c, 64 / static_cast<std::int64_t>(sizeof(T))) : 0;
}

/// The function of a forward pass's results: bounds, if it is a ReLU or a clip.
template <class T>
struct ConvTail {
  std::optional<Bounds<T>> bounds;
  std::shared_ptr<const Activation<T>> activation;  ///< null: none

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

/// The parameters. With a folded batch norm, fold() has prepared scale and bias.
template <class T>
Filters<T> filters_of(const ConvUnit& c, const Args& args, const ConvTail<T>& tail) {
  Filters<T> all{args.w[0].as<T>(),
                 {.add = c.add, .bounds = tail.bounds ? &*tail.bounds : nullptr, .activation = tail.activation.get()}};
  const T* const prepared = static_cast<const T*>(args.prepared);
  if (c.folded) all.epilogue.scale = prepared;
  if (c.has_bias()) all.epilogue.bias = c.folded ? prepared + fold_room<T>(c) : args.w[1].as<T>();
  return all;
}

/// scale[k] = norm_scale[k] / sqrt(variance[k] + epsilon) and bias[k] = (conv_bias[k] - mean[k]) * scale[k] + shift[k],
/// computed in double. Parameters and state are the convolution's, then the batch norm's.
template <class T>
void fold(const ConvUnit&, const Args&);

/// Prepares scale and bias, for algorithms that want nothing else prepared.
Lowered::Step fold_step(const ConvUnit&);
std::size_t fold_bytes(const ConvUnit&);

/// If an Add follows the convolution, copies its other operand to y. The convolution is then added to y.
void place_addend(const ConvUnit&, const Args&, ThreadPool&);

}  // namespace lamina::eigen
