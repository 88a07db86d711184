#pragma once
// Batch and group normalisation: the gradients.

#include <array>

#include "channel.h"

namespace lamina::eigen::batch_norm {

/// Where the slope of the function that follows comes from. For a ReLU: from y or, without an Add, from x by the same
/// arithmetic as in forward, so that y is not read. For another function: from x in the same way, but chunk by chunk
/// (by_rows).
enum class Mask { none, from_y, from_x, by_rows };

template <class T>
Mask mask_of(const Tail<T>& tail) {
  if (tail.activation != nullptr) return Mask::by_rows;
  if (!tail.relu) return Mask::none;
  return tail.add ? Mask::from_y : Mask::from_x;
}

/// The affine map of one channel and the function that follows, for the gradient.
template <class T>
struct Channel {
  Affine<T> affine;
  const Activation<T>* activation;
};

template <class T>
struct Rooms {
  Room<T> dy, x, y;
};

/// dz, the gradient of the normalised value, on one chunk of a plane: dy times the slope of the function that follows.
/// With `ahead` the reads of a later chunk are prefetched.
template <class T, Mask mask>
struct Gradient {
  const T *dy, *x, *y;
  Affine<T> affine;

  Gradient(const Args& args, const Channel<T>& channel, std::int64_t n, std::int64_t c, std::int64_t first,
           std::int64_t count, Rooms<T>& rooms, bool ahead)
      : dy(load(args.dy, plane(args.dy, n, c) + first, count, rooms.dy, ahead)),
        x(load(args.x[0], plane(args.x[0], n, c) + first, count, rooms.x, ahead)),
        y(mask == Mask::from_y ? load(args.y, plane(args.y, n, c) + first, count, rooms.y, ahead) : nullptr),
        affine(channel.affine) {
    if constexpr (mask == Mask::by_rows) {
      T* const dz = rooms.y.elements;
      const Affine<T> normalised = affine;  // a copy, whose constants stay in registers
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) dz[i] = normalised(x[i]);
      channel.activation->backward(dz, dz, dy, count);
      dy = dz;
    }
  }

  T operator[](std::int64_t i) const {
    if constexpr (mask == Mask::from_y) return y[i] > 0 ? dy[i] : T(0);
    if constexpr (mask == Mask::from_x) return affine(x[i]) > 0 ? dy[i] : T(0);
    return dy[i];
  }

  /// The address of dz on the chunk: dy itself, or `room`, to which dz is then written.
  const T* write(std::int64_t count, T* room) const {
    if constexpr (mask == Mask::none || mask == Mask::by_rows) return dy;
    const Gradient dz = *this;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) room[i] = dz[i];
    return room;
  }
};

/// Two sums over a part of one channel: of dz, and of dz (x - mean).
template <class T, Mask mask>
TwoSums gradient_sums(const Args& args, const Channel<T>& channel, double mean, const Part& part) {
  TwoSums sums;
  T room[chunk];
  Rooms<T> rooms;
  for_each_chunk(args.dy.shape, part, [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    const Gradient<T, mask> gradient(args, channel, n, part.c, first, count, rooms, true);
    const T* dz = gradient.write(count, room);
    const T* x = gradient.x;
    sums.add(count, [&](const auto& load_at, std::int64_t i, auto& sum, auto& products) {
      const auto d = load_at(dz + i);
      sum += d;
      products = multiply_add(d, load_at(x + i) - mean, products);  // rounded alike with every mask
    });
  });
  return sums;
}

/// dx = factor dz + (x - mean) slope + offset.
template <class T>
struct DataGradient {
  T factor, mean, slope, offset;

  T operator()(T dz, T x) const { return multiply_add(factor, dz, multiply_add(x - mean, slope, offset)); }
};

template <class T, Mask mask>
void write_gradients(const Args& args, const Channel<T>& channel, const DataGradient<T>& data, const Part& part,
                     const std::array<bool, 2>& adds) {
  const bool on_dy = wanted(args, 1) && same_place(args.dx[1], args.dy);
  const bool wants_other = wanted(args, 1) && (mask != Mask::none || adds[1] || !on_dy);
  const bool wants_x = wanted(args, 0);
  if (!wants_x && !wants_other) return;
  const auto output = [&](std::size_t i, bool is_wanted) {
    return Output<T>(is_wanted ? args.dx[i] : Tensor{}, adds[i],
                     {&args.dy, &args.x[0], mask == Mask::from_y ? &args.y : &args.dy});
  };
  Output<T> to_x = output(0, wants_x), to_other = output(1, wants_other);
  T room[chunk];
  Rooms<T> rooms;
  for_each_chunk(args.dy.shape, part, [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    const Gradient<T, mask> gradient(args, channel, n, part.c, first, count, rooms, false);
    const auto write_x = [&](const auto& dz) {
      T* const dx = to_x.begin(plane(args.dx[0], n, part.c) + first, count, adds[0]);
      put_each(dx, count, adds[0], [dz, x = gradient.x, data](std::int64_t i) { return data(dz[i], x[i]); });
      to_x.finish(dx);
    };
    if (!wants_other) return write_x(gradient);
    const T* dz = gradient.write(count, room);
    const auto write_other = [&] {
      T* const other = to_other.begin(plane(args.dx[1], n, part.c) + first, count, adds[1]);
      const bool as_it_is = !adds[1] && !to_other.in_place();
      if (!as_it_is) put(other, dz, count, adds[1]);
      to_other.finish(as_it_is ? dz : other);
    };
    // If a gradient shares dy's memory, it is written after the other gradient has read dy.
    if (!on_dy) write_other();
    if (wants_x) write_x(dz);
    if (on_dy) write_other();
  });
}

/// How gradients are computed and written.
template <class T>
struct How {
  std::array<bool, 2> adds;  ///< whether the gradient of each input is added to
  bool adds_dw;
  std::shared_ptr<const Activation<T>> activation;  ///< activation, with Mask::by_rows
};

/// The gradients of scale and shift.
template <class T, Mask mask>
Pair parameter_gradients(const Args& args, const How<T>& how, std::int64_t c) {
  const Statistics& statistics = saved_statistics(args, c);
  const Channel<T> channel{affine_of<T>(args, statistics, c), how.activation.get()};
  const TwoSums sums = gradient_sums<T, mask>(args, channel, statistics.mean, whole_channel(args.dy.shape, c));
  const Pair gradients = {sums.second() * statistics.inverse_deviation, sums.first()};
  put_parameter_gradients<T>(args, c, gradients, how.adds_dw);
  return gradients;
}

/// Computes the data gradients from the gradients of scale and shift over `count` numbers.
template <class T, Mask mask>
void data_gradients(const Args& args, const How<T>& how, std::int64_t c, const Pair& gradients, double count) {
  const auto& [dscale, dshift] = gradients;
  const double inverse_deviation = saved_statistics(args, c).inverse_deviation;
  const Affine<T> affine = affine_of<T>(args, saved_statistics(args, c), c);
  const double factor = static_cast<double>(args.w[0].as<T>()[c]) * inverse_deviation;
  const DataGradient<T> data = {static_cast<T>(factor), affine.mean,
                                static_cast<T>(-factor * inverse_deviation * dscale / count),
                                static_cast<T>(-factor * dshift / count)};
  write_gradients<T, mask>(args, {affine, how.activation.get()}, data, whole_channel(args.dy.shape, c), how.adds);
}

}  // namespace lamina::eigen::batch_norm
