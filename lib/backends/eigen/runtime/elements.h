#pragma once
// What the element-wise and windowed ops share: even shares of images, loops that the compiler may
// vectorise.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common.h"

/// Before a loop whose iterations touch no element of each other's; operands may still be the same memory, index by
/// index.
#if defined(__clang__)
#define LAMINA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define LAMINA_INDEPENDENT _Pragma("GCC ivdep")
#else
#define LAMINA_INDEPENDENT
#endif

namespace lamina::eigen {

/// The n-th image of a tensor.
template <class T>
T* image(const Tensor& tensor, std::int64_t n) {
  return tensor.as<T>() + n * tensor.pitch;
}

/// Calls work(n, first, last) for ranges of elements of images that cover all images once, shared out among the
/// threads.
template <class Work>
void split_images(Pool& pool, const Shape& shape, Work&& work) {
  constexpr std::int64_t grain = 4096;  // elements; below it a thread is not worth waking
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
void split_planes(Pool& pool, const Shape& shape, Work&& work) {
  pool.split(std::int64_t{shape.n} * shape.c, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) work(i / shape.c, i % shape.c);
  });
}

/// The steps of an op that is done in one way: forward; in training recompute, which is the same, and backward.
template <class Forward, class Backward>
void add_steps(Lowered& unit, const Spec& spec, const Forward& forward, const Backward& backward,
               std::size_t workspace_bytes = 0) {
  unit.steps.push_back(step({Pass::forward}, "direct", forward, workspace_bytes));
  if (spec.mode == Mode::inference) return;
  unit.steps.push_back(step({Pass::recompute}, "direct", forward, workspace_bytes));
  unit.steps.push_back(step({Pass::backward_data}, "direct", backward, workspace_bytes));
}

/// Calls function(std::true_type) or function(std::false_type): a flag that the compiler sees.
template <class Function>
void with_flag(bool flag, Function&& function) {
  if (flag) {
    function(std::true_type{});
  } else {
    function(std::false_type{});
  }
}

/// to = from, or to += from.
template <class T>
void put(T* to, const T* from, std::int64_t count, bool adds) {
  with_flag(adds, [&](auto add) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) to[i] = add ? to[i] + from[i] : from[i];
  });
}

/// Prefetches elements that will soon be read, or written; the addresses may be out of bounds. A processor whose own
/// prefetching is weak, as under hypervisors, otherwise waits for one line after the other.
template <bool Writes = false, class T>
void prefetch(const T* from, std::int64_t count, std::uintptr_t ahead_bytes = 0) {
  constexpr std::uintptr_t line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(from) + ahead_bytes;
  const auto last = first + static_cast<std::uintptr_t>(count) * sizeof(T);
  for (std::uintptr_t at = first; at < last; at += line) {
    __builtin_prefetch(reinterpret_cast<const void*>(at), Writes ? 1 : 0);
  }
}

/// Prefetches what is some distance after these elements: what a loop that goes on there will read, or write.
template <class T>
void prefetch_behind(const T* from, std::int64_t count) {
  prefetch(from, count, 8192);
}
template <class T>
void prefetch_to_write(const T* from, std::int64_t count) {
  prefetch<true>(from, count, 4096);
}

/// a b + c, rounded once where the processor does so: the same bits wherever the compiler places it.
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
