#pragma once
// Batch normalisation: one channel, which both passes process chunk by chunk.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/backends/eigen/half/elements.h"
#include "lib/backends/eigen/pointwise/rows.h"
#include "lib/backends/eigen/runtime/common.h"
#include "lib/backends/eigen/runtime/lanes.h"

namespace lamina::eigen::batch_norm {

constexpr std::int64_t chunk = elements_of_room;  // elements between two prefetches

/// y = (x - mean) * factor + shift, in the type of the tensors.
template <class T>
struct Affine {
  T mean, factor, shift;

  Affine(double channel_mean, double inverse_deviation, double scale, double channel_shift)
      : mean(static_cast<T>(channel_mean)),
        factor(static_cast<T>(scale * inverse_deviation)),
        shift(static_cast<T>(channel_shift)) {}

  T operator()(T x) const { return multiply_add(x - mean, factor, shift); }
};

/// The ops that follow the batch norm in its unit.
template <class T>
struct Tail : NormTail {
  std::shared_ptr<const Activation<T>> activation;  ///< function other than ReLU; null: none
};

template <class T>
Tail<T> tail_of(const Spec& spec, const InstructionSet& set) {
  Tail<T> tail{norm_tail(spec), nullptr};
  if (!tail.relu && !spec.tail.empty()) tail.activation = activation<T>(spec.tail.back(), set);
  return tail;
}

/// Mean and inverse standard deviation of a channel, which forward saves in training.
struct Statistics {
  double mean, inverse_deviation;
};

inline Statistics& saved_statistics(const Args& args, std::int64_t c) {
  return static_cast<Statistics*>(args.saved)[c];
}

template <class T>
Affine<T> affine_of(const Args& args, const Statistics& statistics, std::int64_t c) {
  return {statistics.mean, statistics.inverse_deviation, static_cast<double>(args.w[0].as<T>()[c]),
          static_cast<double>(args.w[1].as<T>()[c])};
}

/// Two numbers of a channel that are added up over all ranks.
using Pair = std::pair<double, double>;

inline Pair& joint_pair(void* block, std::int64_t c) { return static_cast<Pair*>(block)[c]; }

/// The number of elements of a channel in the batch of all ranks.
inline double count_of(const Shape& shape, int ranks) { return static_cast<double>(shape.n * shape.plane() * ranks); }

/// The place of a plane's first element.
inline std::int64_t plane(const Tensor& tensor, std::int64_t n, std::int64_t c) {
  return n * tensor.pitch + c * tensor.shape.plane();
}

/// Calls work(n, first, count) for chunks of one channel's planes.
template <class Work>
void for_each_chunk(const Shape& shape, Work&& work) {
  const std::int64_t size = shape.plane();
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t first = 0; first < size; first += chunk) work(n, first, std::min(chunk, size - first));
}

template <class Work>
void split_channels(ThreadPool& pool, const Shape& shape, Work&& work) {
  pool.split(shape.c, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t c = from; c < to; ++c) work(c);
  });
}

}  // namespace lamina::eigen::batch_norm
