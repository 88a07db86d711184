#pragma once
// Shared by the element-wise and windowed ops: even shares of images, loops that the compiler may vectorise.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common.h"
#include "lib/core/numbers/rounding.h"

/// Marks a loop of independent iterations. Operands may share memory if an iteration uses the same index of both.
#if defined(__clang__)
#define LAMINA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LAMINA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace lamina::eigen {

/// The n-th image of a tensor.
template <class T>
T* image(const Tensor& tensor, std::int64_t n) {
  return tensor.as<T>() + n * tensor.pitch;
}

/// Calls work(n, first, last) for ranges of elements of images that cover all images once, divided among the threads.
template <class Work>
void split_images(ThreadPool& pool, const Shape& shape, Work&& work) {
  constexpr std::int64_t grain = 4096;  // elements; less is not worth waking a thread
  const std::int64_t size = shape.image();
  pool.split(shape.count(), grain, [&](std::int64_t from, std::int64_t to) {
    while (from < to) {
      const std::int64_t n = from / size, first = from - n * size;
      const std::int64_t last = std::min(size, first + to - from);
      work(n, first, last);
      from += last - first;
    }
  });
}

/// Calls work(n, c) for every plane, in order within a thread.
template <class Work>
void split_planes(ThreadPool& pool, const Shape& shape, Work&& work) {
  pool.each(std::int64_t{shape.n} * shape.c, 1, [&](std::int64_t i) { work(i / shape.c, i % shape.c); });
}

/// Calls work(part, n, first pixel, pixels) for chunks of pixels that cover every image once. A thread gets a multiple
/// of `grain` chunks.
template <class Work>
void split_chunks(ThreadPool& pool, const Shape& shape, std::int64_t chunk, std::int64_t grain, Work&& work) {
  const std::int64_t plane = shape.plane(), chunks = divide_up(plane, chunk);
  pool.split_parts(shape.n * chunks, grain, [&](int part, std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t first = i % chunks * chunk;
      work(part, i / chunks, first, std::min(chunk, plane - first));
    }
  });
}

/// Calls function(std::true_type) or function(std::false_type), so that the compiler knows the flag.
template <class Function>
void with_flag(bool flag, Function&& function) {
  if (flag) {
    function(std::true_type{});
  } else {
    function(std::false_type{});
  }
}

/// to[i] = number(i), or to[i] += number(i).
template <class T, class Number>
void put_each(T* to, std::int64_t count, bool adds, const Number& number) {
  with_flag(adds, [&](auto add) {
    const Number its = number;  // a reference would be read again after each store
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) to[i] = add ? to[i] + its(i) : its(i);
  });
}

/// to = from, or to += from.
template <class T>
void put(T* to, const T* from, std::int64_t count, bool adds) {
  put_each(to, count, adds, [from](std::int64_t i) { return from[i]; });
}

constexpr std::int64_t terms_at_once = 1 << 14;  // terms that are summed in their own type; further sums are in double

/// The sum of term(i) for i below `count`, in 32 interleaved sums, so that the additions run side by side and their
/// errors stay small.
template <class T, class Term>
double interleaved_sum(std::int64_t count, Term&& term) {
  constexpr std::int64_t lanes = 32;
  double all = 0;
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t last = std::min(count, i + terms_at_once);
    T sums[lanes] = {};
    for (; i + lanes <= last; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
    for (std::int64_t lane = 0; i < last; ++i, ++lane) sums[lane] += term(i);
#pragma GCC unroll 5  // all of them, so that the sums stay in registers
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    all += static_cast<double>(sums[0]);
  }
  return all;
}

/// Prefetches elements that will soon be read or written; the addresses may be out of bounds. Without this, a processor
/// that prefetches little by itself, as under hypervisors, waits for line after line.
template <bool Writes = false, class T>
void prefetch(const T* from, std::int64_t count, std::uintptr_t ahead_bytes = 0) {
  constexpr std::uintptr_t line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(from) + ahead_bytes;
  const auto last = first + static_cast<std::uintptr_t>(count) * sizeof(T);
  for (std::uintptr_t at = first; at < last; at += line) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): arithmetic on a pointer would be undefined out of bounds
    __builtin_prefetch(reinterpret_cast<const void*>(at), Writes ? 1 : 0);
  }
}

/// Prefetches elements some distance behind these, which a loop will soon read, or write.
template <class T>
void prefetch_ahead(const T* from, std::int64_t count) {
  prefetch(from, count, 8192);
}
template <class T>
void prefetch_to_write(const T* from, std::int64_t count) {
  prefetch<true>(from, count, 4096);
}

/// a b + c, rounded once if the processor can: the same bits wherever the compiler places it.
template <class T>
T multiply_add(T a, T b, T c) {
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
  if constexpr (std::is_same_v<T, float>) return __builtin_fmaf(a, b, c);
  return static_cast<T>(__builtin_fma(a, b, c));
#else
  return a * b + c;
#endif
}

}  // namespace lamina::eigen
