#pragma once
// Vectorised exponentials over chunks of a fixed size, and what follows from them.

#include <Eigen/Core>

#include "../runtime/elements.h"

namespace lamina::eigen {

constexpr std::int64_t chunk = 64;  // elements

/// Of fixed size and place, so that an exponential has the same bits wherever its argument lies in memory.
template <class T>
using Chunk = Eigen::Array<T, chunk, 1>;

/// Up to a chunk of elements; the rest is 0.
template <class T>
void load(const T* from, std::int64_t count, Chunk<T>& to) {
  to.setZero();
  std::copy_n(from, count, to.data());
}

/// exp(x - largest) for up to a chunk of elements.
template <class T, class Largest>
void exponentials(const T* x, const Largest& largest, std::int64_t count, Chunk<T>& to) {
  load(x, count, to);
  to = (to - largest).exp();
}

/// 1 / (1 + exp(-x)), in place.
template <class T>
void sigmoid_of(Chunk<T>& x) {
  x = T(1) / (T(1) + (-x).exp());
}

/// tanh(x), in place; in f64 one after the other, by the mathematics library. The vectorised one ends at 1 and loses
/// NaN.
template <class T>
void tanh_of(Chunk<T>& x) {
  const Chunk<T> tanh = x.tanh();
  x = (x == x).select(tanh, x);
}

/// Calls work(n, first pixel, pixels) for chunks that cover every pixel of every image once.
template <class Work>
void split_chunks(Pool& pool, const Shape& shape, Work&& work) {
  const std::int64_t plane = shape.plane(), chunks = (plane + chunk - 1) / chunk;
  // Below so many elements a thread is not worth waking.
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (std::min(chunk, plane) * shape.c));
  pool.split(shape.n * chunks, grain, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t first = i % chunks * chunk;
      work(i / chunks, first, std::min(chunk, plane - first));
    }
  });
}

}  // namespace lamina::eigen
