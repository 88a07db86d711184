#pragma once
// Vectorised exponentials over chunks of a fixed size, and functions made of them.

#include <Eigen/Core>

#include "lib/backends/eigen/half/elements.h"

namespace lamina::eigen {

constexpr std::int64_t chunk = 64;  // elements

/// A chunk has a fixed size and alignment, so that an exponential has the same bits wherever its argument lies.
template <class T>
using Chunk = Eigen::Array<T, chunk, 1>;

/// Loads up to a chunk of elements; the rest is 0.
template <class T>
void load(const T* from, std::int64_t count, Chunk<T>& to) {
  to.setZero();
  std::copy_n(from, count, to.data());
}

/// Stores up to a chunk of elements.
template <class T>
void store(const Chunk<T>& from, std::int64_t count, T* to) {
  if (count == chunk)
    Eigen::Map<Chunk<T>>{to} = from;
  else
    std::copy_n(from.data(), count, to);
}

/// The largest of adjacent elements.
template <class T>
T largest_element(const T* x, std::int64_t count) {
  Chunk<T> maxima = Chunk<T>::Constant(x[0]), rest = maxima;
  std::int64_t at = 0;
  for (; at + chunk <= count; at += chunk) maxima = maxima.max(Eigen::Map<const Chunk<T>>(x + at));
  std::copy(x + at, x + count, rest.data());  // one by one, each maximum would wait for the maximum before
  return maxima.max(rest).maxCoeff();
}

/// largest[i] = the larger of largest[i] and x[i].
template <class T>
void take_larger(T* largest, const T* x, std::int64_t count) {
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = x[i], best = largest[i];  // std::max would be a branch
    largest[i] = value > best ? value : best;
  }
}

/// exp(x - largest) for up to a chunk of elements; the rest is 0.
template <class T, class Largest>
void exponentials(const T* x, const Largest& largest, std::int64_t count, Chunk<T>& to) {
  if (count == chunk) {
    to = (Eigen::Map<const Chunk<T>>(x) - largest).exp();
    return;
  }
  load(x, count, to);
  to = (to - largest).exp();
  to.tail(chunk - count).setZero();
}

/// 1 / (1 + exp(-x)), in place.
template <class T>
void sigmoid_of(Chunk<T>& x) {
  x = T(1) / (T(1) + (-x).exp());
}

/// Calls work(n, first pixel, pixels) for chunks of pixels that cover every image once.
template <class Work>
void split_chunks(ThreadPool& pool, const Shape& shape, Work&& work) {
  // Fewer elements are not worth waking a thread.
  const std::int64_t least_chunks = std::max<std::int64_t>(1, 4096 / (std::min(chunk, shape.plane()) * shape.c));
  split_chunks(pool, shape, chunk, least_chunks,
               [&](int, std::int64_t n, std::int64_t first, std::int64_t pixels) { work(n, first, pixels); });
}

}  // namespace lamina::eigen
