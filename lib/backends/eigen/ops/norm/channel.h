#pragma once
// Batch and group normalisation: one channel, or one group of an image, which both passes process chunk by chunk.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/backends/eigen/half/elements.h"
#include "lib/backends/eigen/pointwise/activation.h"
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

/// Mean and inverse standard deviation of a channel, group or pixel, which forward saves in training.
struct Statistics {
  double mean, inverse_deviation;
};

inline Statistics& saved_statistics(const Args& args, std::int64_t c) {
  return static_cast<Statistics*>(args.saved)[c];
}

/// The scale (k = 0) or the shift of a channel. A norm without parameters has 1 and 0.
template <class T>
double number_of(const Args& args, std::size_t k, std::int64_t c) {
  return args.w.empty() ? static_cast<double>(1 - k) : static_cast<double>(args.w[k].as<T>()[c]);
}

template <class T>
Affine<T> affine_of(const Args& args, const Statistics& statistics, std::int64_t c) {
  return {statistics.mean, statistics.inverse_deviation, number_of<T>(args, 0, c), number_of<T>(args, 1, c)};
}

/// Two numbers of a channel or of a part of it, for instance two sums.
using Pair = std::pair<double, double>;

inline Pair& joint_pair(void* block, std::int64_t c) { return static_cast<Pair*>(block)[c]; }

/// Sets the gradients of the scale and the shift of a channel or, with `adds`, adds to them.
template <class T>
void put_parameter_gradients(const Args& args, std::int64_t c, const Pair& gradients, bool adds) {
  const auto place = [&](std::size_t i, double value) {
    if (i >= args.dw.size() || !args.dw[i]) return;
    T& dw = args.dw[i].as<T>()[c];
    dw = adds ? dw + static_cast<T>(value) : static_cast<T>(value);
  };
  place(0, gradients.first);
  place(1, gradients.second);
}

/// The same for every channel, from sums of `count` parts of the batch. The sums of one part are neighbours.
template <class T>
void sum_parameter_gradients(const Args& args, const Pair* parts, std::int64_t count, bool adds) {
  const std::int64_t channels = args.dy.shape.c;
  for (std::int64_t c = 0; c < channels && !args.dw.empty(); ++c) {
    Pair all = {0, 0};
    for (std::int64_t i = 0; i < count; ++i) {
      all.first += parts[i * channels + c].first;
      all.second += parts[i * channels + c].second;
    }
    put_parameter_gradients<T>(args, c, all, adds);
  }
}

/// The number of elements of a channel in the batch of all ranks.
inline double count_of(const Shape& shape, int ranks) { return static_cast<double>(shape.n * shape.plane() * ranks); }

/// The place of a plane's first element.
inline std::int64_t plane(const Tensor& tensor, std::int64_t n, std::int64_t c) {
  return n * tensor.pitch + c * tensor.shape.plane();
}

/// Channels that are normalised together: `channels` channels from c on, in images [first, last).
struct Part {
  std::int64_t first, last, c, channels = 1;
};

inline Part whole_channel(const Shape& shape, std::int64_t c) { return {0, shape.n, c}; }

/// Calls work(n, first, count) for chunks of the planes of a part, from the first of its channels on.
template <class Work>
void for_each_chunk(const Shape& shape, const Part& part, Work&& work) {
  const std::int64_t size = part.channels * shape.plane();
  for (std::int64_t n = part.first; n < part.last; ++n)
    for (std::int64_t first = 0; first < size; first += chunk) work(n, first, std::min(chunk, size - first));
}

}  // namespace lamina::eigen::batch_norm
