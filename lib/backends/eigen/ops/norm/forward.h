#pragma once
// Batch and group normalisation: forward.

#include <algorithm>
#include <cmath>

#include "channel.h"

namespace lamina::eigen::batch_norm {

/// Mean and biased variance of a part. The sums are of differences from one value of the part. So the spread of the
/// values limits cancellation, and one pass is enough.
template <class T>
Pair mean_and_variance(const Tensor& x, const Part& part) {
  Room<T> room;
  const double origin = static_cast<double>(*load(x, plane(x, part.first, part.c), 1, room));
  TwoSums sums;
  for_each_chunk(x.shape, part, [&](std::int64_t n, std::int64_t first, std::int64_t size) {
    const T* from = load(x, plane(x, n, part.c) + first, size, room, true);
    sums.add(size, [&](const auto& load_at, std::int64_t i, auto& sum, auto& squares) {
      const auto d = load_at(from + i) - origin;
      sum += d;
      squares += d * d;
    });
  });
  const auto count = static_cast<double>((part.last - part.first) * part.channels * x.shape.plane());
  const double offset = sums.first() / count;
  return {origin + offset, std::max(0.0, sums.second() / count - offset * offset)};
}

template <class T>
void update_running(const Args& args, std::int64_t c, const BatchNorm& op, double mean, double variance) {
  const double count = count_of(args.x[0].shape, op.ranks);
  const auto update = [&](T& running, double batch) {
    running = static_cast<T>((1 - op.momentum) * static_cast<double>(running) + op.momentum * batch);
  };
  update(args.state[0].as<T>()[c], mean);
  update(args.state[1].as<T>()[c], variance * (count / (count - 1)));
}

template <class T, bool Adds, bool Clips>
void write_channel(const Args& args, const Activation<T>* activation, const Affine<T>& affine, const Part& part) {
  Output<T> y(args.y, false, {&args.x.front(), &args.x.back()});
  Room<T> room, other_room;
  for_each_chunk(args.y.shape, part, [&](std::int64_t n, std::int64_t first, std::int64_t size) {
    const T* x = load(args.x[0], plane(args.x[0], n, part.c) + first, size, room);
    const T* other = Adds ? load(args.x[1], plane(args.x[1], n, part.c) + first, size, other_room, true) : nullptr;
    T* to = y.begin(plane(args.y, n, part.c) + first, size, false);
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < size; ++i) {
      T value = affine(x[i]);
      if (Adds) value += other[i];
      if (Clips) value = value <= 0 ? T(0) : value;
      to[i] = value;
    }
    if (activation != nullptr) activation->forward(to, to, size);
    y.finish(to);
  });
}

template <class T>
void write_channel(const Args& args, const Tail<T>& tail, const Affine<T>& affine, const Part& part) {
  with_flag(tail.add, [&](auto adds) {
    with_flag(tail.relu, [&](auto clips) { write_channel<T, adds, clips>(args, tail.activation.get(), affine, part); });
  });
}

template <class T>
void normalise(const Args& args, const BatchNorm& op, const Tail<T>& tail, std::int64_t c,
               const Pair& mean_and_variance) {
  const auto& [mean, variance] = mean_and_variance;
  Statistics& statistics = saved_statistics(args, c);
  statistics = {mean, 1 / std::sqrt(variance + op.epsilon)};
  update_running<T>(args, c, op, mean, variance);
  write_channel(args, tail, affine_of<T>(args, statistics, c), whole_channel(args.y.shape, c));
}

/// Leaves this rank's shares of two means: of x, and of x^2.
template <class T>
void leave_statistics(const Args& args, const BatchNorm& op, std::int64_t c) {
  const auto [mean, variance] = mean_and_variance<T>(args.x[0], whole_channel(args.x[0].shape, c));
  joint_pair(args.saved, c) = {mean / op.ranks, (variance + mean * mean) / op.ranks};
}

/// Makes the affine map of inference from parameters and running statistics.
template <class T>
Affine<T> running_affine(const Args& args, const BatchNorm& op, std::int64_t c) {
  const auto mean = static_cast<double>(args.state[0].as<T>()[c]);
  const auto variance = static_cast<double>(args.state[1].as<T>()[c]);
  return affine_of<T>(args, {mean, 1 / std::sqrt(variance + op.epsilon)}, c);
}

}  // namespace lamina::eigen::batch_norm
