#pragma once
// Shared by the two units of an embedding: rows of the table and of its gradient.

#include <algorithm>

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

/// to += factor * from.
template <class T>
void add_row(T* to, const T* from, T factor, std::int64_t features) {
  LAMINA_INDEPENDENT
  for (std::int64_t f = 0; f < features; ++f) to[f] += factor * from[f];
}

/// Calls add(from, to) for ranges of rows that cover the table's gradient once. The rows are first set to zero unless
/// the gradient adds.
template <class T, class Add>
void split_rows(ThreadPool& pool, const Args& args, const Embedding& op, bool adds, Add&& add) {
  pool.split(op.vocabulary, 64, [&](std::int64_t from, std::int64_t to) {
    T* const dw = args.dw[0].as<T>();
    if (!adds) std::fill(dw + from * op.features, dw + to * op.features, T(0));
    add(from, to);
  });
}

/// The unit of an Embedding and the GlobalAveragePool after it.
Lowered lower_embedding_mean(const Embedding&, const Spec&, const Context&);

}  // namespace lamina::eigen
