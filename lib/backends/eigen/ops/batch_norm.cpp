// Batch normalisation, alone or with an Add and a ReLU after it, one channel at a time: its planes are read from
// memory once and stay in cache for the second pass. Sums are in double, in an order that no number of threads changes.
// What f32 computes may be stored in half precision: each tensor has its own type. Where several ranks have one batch,
// each pass is two calls: the first leaves sums that the caller adds up over the ranks, and the second computes with
// them.

#include <array>
#include <cmath>
#include <utility>

#include "lib/backends/eigen/half/elements.h"
#include "lib/backends/eigen/runtime/lanes.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t chunk = elements_of_room;  // between two prefetches

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

/// Mean and inverse standard deviation per channel: what forward saves in training.
struct Statistics {
  double mean, inverse_deviation;
};

Statistics& saved_statistics(const Args& args, std::int64_t c) { return static_cast<Statistics*>(args.saved)[c]; }

template <class T>
Affine<T> affine_of(const Args& args, const Statistics& statistics, std::int64_t c) {
  return {statistics.mean, statistics.inverse_deviation, static_cast<double>(args.w[0].as<T>()[c]),
          static_cast<double>(args.w[1].as<T>()[c])};
}

/// Two numbers of a channel that are added up over all ranks.
using Pair = std::pair<double, double>;

Pair& joint_pair(void* block, std::int64_t c) { return static_cast<Pair*>(block)[c]; }

/// Numbers of a channel in the batch of all ranks.
double count_of(const Shape& shape, int ranks) { return static_cast<double>(shape.n * shape.plane() * ranks); }

/// The place of a plane's first element.
std::int64_t plane(const Tensor& tensor, std::int64_t n, std::int64_t c) {
  return n * tensor.pitch + c * tensor.shape.plane();
}

/// Calls work(n, first, count) for chunks of one channel's planes.
template <class Work>
void for_each_chunk(const Shape& shape, Work&& work) {
  const std::int64_t size = shape.plane();
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t first = 0; first < size; first += chunk) work(n, first, std::min(chunk, size - first));
}

// ---- forward -------------------------------------------------------------------------------------------------------

/// Mean and biased variance of one channel. Sums of differences from one of its values: no cancellation beyond the
/// spread of the channel itself, so that one pass is enough.
template <class T>
Pair mean_and_variance(const Tensor& x, std::int64_t c) {
  Room<T> room;
  const double origin = static_cast<double>(*load(x, plane(x, 0, c), 1, room));
  TwoSums sums;
  for_each_chunk(x.shape, [&](std::int64_t n, std::int64_t first, std::int64_t size) {
    const T* from = load(x, plane(x, n, c) + first, size, room, true);
    sums.add(
        size,
        [&](std::int64_t i, Double4& sum, Double4& squares) {
          const Double4 d = load4(from + i) - origin;
          sum += d;
          squares += d * d;
        },
        [&](std::int64_t i, auto& sum, auto& squares) {
          const double d = static_cast<double>(from[i]) - origin;
          sum += d;
          squares += d * d;
        });
  });
  const double count = count_of(x.shape, 1);
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
void write_channel(const Args& args, const Affine<T>& affine, std::int64_t c) {
  Output<T> y(args.y,
              is_large<T>(args.y) && !same_place(args.y, args.x[0]) && !(Adds && same_place(args.y, args.x[1])));
  Room<T> room, other_room;
  for_each_chunk(args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t size) {
    const T* x = load(args.x[0], plane(args.x[0], n, c) + first, size, room);
    const T* other = Adds ? load(args.x[1], plane(args.x[1], n, c) + first, size, other_room, true) : nullptr;
    T* to = y.begin(plane(args.y, n, c) + first, size, false);
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < size; ++i) {
      T value = affine(x[i]);
      if (Adds) value += other[i];
      if (Clips) value = value <= 0 ? T(0) : value;
      to[i] = value;
    }
    y.finish(to);
  });
}

template <class T>
void write_channel(const Args& args, NormTail tail, const Affine<T>& affine, std::int64_t c) {
  with_flag(tail.add, [&](auto adds) {
    with_flag(tail.relu,
              [&](auto clips) { write_channel<T, decltype(adds)::value, decltype(clips)::value>(args, affine, c); });
  });
}

template <class Work>
void split_channels(ThreadPool& pool, const Shape& shape, Work&& work) {
  pool.split(shape.c, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t c = from; c < to; ++c) work(c);
  });
}

template <class T>
void normalise(const Args& args, const BatchNorm& op, NormTail tail, std::int64_t c, const Pair& mean_and_variance) {
  const auto& [mean, variance] = mean_and_variance;
  Statistics& statistics = saved_statistics(args, c);
  statistics = {mean, 1 / std::sqrt(variance + op.epsilon)};
  update_running<T>(args, c, op, mean, variance);
  write_channel(args, tail, affine_of<T>(args, statistics, c), c);
}

template <class T>
void forward_training(ThreadPool& pool, const Args& args, const BatchNorm& op, NormTail tail) {
  split_channels(pool, args.y.shape,
                 [&](std::int64_t c) { normalise<T>(args, op, tail, c, mean_and_variance<T>(args.x[0], c)); });
}

/// Leaves this rank's shares of the mean of x and of x^2.
template <class T>
void leave_statistics(ThreadPool& pool, const Args& args, const BatchNorm& op) {
  split_channels(pool, args.x[0].shape, [&](std::int64_t c) {
    const auto [mean, variance] = mean_and_variance<T>(args.x[0], c);
    joint_pair(args.saved, c) = {mean / op.ranks, (variance + mean * mean) / op.ranks};
  });
}

template <class T>
void forward_of_ranks(ThreadPool& pool, const Args& args, const BatchNorm& op, NormTail tail) {
  split_channels(pool, args.y.shape, [&](std::int64_t c) {
    const auto [mean, square] = joint_pair(args.saved, c);
    normalise<T>(args, op, tail, c, {mean, std::max(0.0, square - mean * mean)});
  });
}

/// Makes of parameters and running statistics what a pass in inference computes with.
template <class T>
void prepare(const Args& args, const BatchNorm& op) {
  auto* const prepared = static_cast<Affine<T>*>(args.prepared);
  for (std::int64_t c = 0; c < args.w[0].shape.count(); ++c) {
    const auto mean = static_cast<double>(args.state[0].as<T>()[c]);
    const auto variance = static_cast<double>(args.state[1].as<T>()[c]);
    prepared[c] = affine_of<T>(args, {mean, 1 / std::sqrt(variance + op.epsilon)}, c);
  }
}

template <class T>
void forward_inference(ThreadPool& pool, const Args& args, NormTail tail) {
  const auto* const prepared = static_cast<const Affine<T>*>(args.prepared);
  split_channels(pool, args.y.shape, [&](std::int64_t c) { write_channel(args, tail, prepared[c], c); });
}

// ---- backward ------------------------------------------------------------------------------------------------------

/// Where ReLU's mask comes from: y, or, where nothing was added, x through the very arithmetic of forward, which saves
/// reading y.
enum class Mask { none, from_y, from_x };

Mask mask_of(NormTail tail) {
  if (!tail.relu) return Mask::none;
  return tail.add ? Mask::from_y : Mask::from_x;
}

template <class T>
struct Rooms {
  Room<T> dy, x, y;
};

/// The gradient of the normalised value, dz: dy, or dy where the ReLU after it let it through. On one chunk of a plane.
/// With `ahead` it prefetches all that a chunk some way after this one will read.
template <class T, Mask mask>
struct Gradient {
  const T *dy, *x, *y;
  Affine<T> affine;

  Gradient(const Args& args, const Affine<T>& channel, std::int64_t n, std::int64_t c, std::int64_t first,
           std::int64_t count, Rooms<T>& rooms, bool ahead)
      : dy(load(args.dy, plane(args.dy, n, c) + first, count, rooms.dy, ahead)),
        x(load(args.x[0], plane(args.x[0], n, c) + first, count, rooms.x, ahead)),
        y(mask == Mask::from_y ? load(args.y, plane(args.y, n, c) + first, count, rooms.y, ahead) : nullptr),
        affine(channel) {}

  T operator[](std::int64_t i) const {
    if constexpr (mask == Mask::from_y) return y[i] > 0 ? dy[i] : T(0);
    if constexpr (mask == Mask::from_x) return affine(x[i]) > 0 ? dy[i] : T(0);
    return dy[i];
  }

  /// The chunk in place, or written to `room`.
  const T* write(std::int64_t count, T* room) const {
    if constexpr (mask == Mask::none) return dy;
    const Gradient dz = *this;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) room[i] = dz[i];
    return room;
  }
};

/// Sums over one channel of dz and of dz (x - mean).
template <class T, Mask mask>
TwoSums gradient_sums(const Args& args, const Affine<T>& affine, double mean, std::int64_t c) {
  TwoSums sums;
  T room[chunk];
  Rooms<T> rooms;
  for_each_chunk(args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    const Gradient<T, mask> gradient(args, affine, n, c, first, count, rooms, true);
    const T* dz = gradient.write(count, room);
    const T* x = gradient.x;
    sums.add(
        count,
        [&](std::int64_t i, Double4& sum, Double4& products) {
          const Double4 d = load4(dz + i);
          sum += d;
          products += d * (load4(x + i) - mean);
        },
        [&](std::int64_t i, auto& sum, auto& products) {
          const auto d = static_cast<double>(dz[i]);
          sum += d;
          products += d * (static_cast<double>(x[i]) - mean);
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

template <class T, class Gradients>
void write_data_gradient(const Gradients& dz, const T* x, T* dx, const DataGradient<T>& data, std::int64_t count,
                         bool adds) {
  const DataGradient<T> gradient = data;
  with_flag(adds, [&](auto add) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      const T d = gradient(dz[i], x[i]);
      dx[i] = add ? dx[i] + d : d;
    }
  });
}

template <class T, Mask mask>
void write_gradients(const Args& args, const Affine<T>& affine, const DataGradient<T>& data, std::int64_t c,
                     const std::array<bool, 2>& adds) {
  const bool on_dy = wanted(args, 1) && same_place(args.dx[1], args.dy);
  const bool wants_other = wanted(args, 1) && (mask != Mask::none || adds[1] || !on_dy);
  const bool wants_x = wanted(args, 0);
  if (!wants_x && !wants_other) return;
  const auto output = [&](std::size_t i, bool is_wanted) {
    if (!is_wanted) return Output<T>({}, false);
    return Output<T>(args.dx[i], is_large<T>(args.dy) && !adds[i] && !same_place(args.dx[i], args.dy) &&
                                     !same_place(args.dx[i], args.x[0]) &&
                                     !(mask == Mask::from_y && same_place(args.dx[i], args.y)));
  };
  Output<T> to_x = output(0, wants_x), to_other = output(1, wants_other);
  T room[chunk];
  Rooms<T> rooms;
  for_each_chunk(args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    const Gradient<T, mask> gradient(args, affine, n, c, first, count, rooms, false);
    const auto write_x = [&](const auto& dz) {
      T* const dx = to_x.begin(plane(args.dx[0], n, c) + first, count, adds[0]);
      write_data_gradient(dz, gradient.x, dx, data, count, adds[0]);
      to_x.finish(dx);
    };
    if (!wants_other) return write_x(gradient);
    const T* dz = gradient.write(count, room);
    const auto write_other = [&] {
      T* const other = to_other.begin(plane(args.dx[1], n, c) + first, count, adds[1]);
      const bool as_it_is = !adds[1] && !to_other.in_place();
      if (!as_it_is) put(other, dz, count, adds[1]);
      to_other.finish(as_it_is ? dz : other);
    };
    // Either may share dy's memory; that one must not be written while the other still reads dy.
    if (!on_dy) write_other();
    if (wants_x) write_x(dz);
    if (on_dy) write_other();
  });
}

/// Of scale and shift.
template <class T, Mask mask>
Pair parameter_gradients(const Args& args, std::int64_t c, bool adds_dw) {
  const Statistics& statistics = saved_statistics(args, c);
  const TwoSums sums = gradient_sums<T, mask>(args, affine_of<T>(args, statistics, c), statistics.mean, c);
  const double dshift = sums.first(), dscale = sums.second() * statistics.inverse_deviation;
  const auto place = [&](std::size_t i, double value) {
    if (i >= args.dw.size() || !args.dw[i]) return;
    T& dw = args.dw[i].as<T>()[c];
    dw = adds_dw ? dw + static_cast<T>(value) : static_cast<T>(value);
  };
  place(0, dscale);
  place(1, dshift);
  return {dscale, dshift};
}

/// With the gradients of scale and shift that `count` numbers gave.
template <class T, Mask mask>
void data_gradients(const Args& args, std::int64_t c, const std::array<bool, 2>& adds, const Pair& gradients,
                    double count) {
  const auto& [dscale, dshift] = gradients;
  const double inverse_deviation = saved_statistics(args, c).inverse_deviation;
  const Affine<T> affine = affine_of<T>(args, saved_statistics(args, c), c);
  const double factor = static_cast<double>(args.w[0].as<T>()[c]) * inverse_deviation;
  const DataGradient<T> data = {static_cast<T>(factor), affine.mean,
                                static_cast<T>(-factor * inverse_deviation * dscale / count),
                                static_cast<T>(-factor * dshift / count)};
  write_gradients<T, mask>(args, affine, data, c, adds);
}

template <class T, Mask mask>
void backward(ThreadPool& pool, const Args& args, const std::array<bool, 2>& adds, bool adds_dw) {
  split_channels(pool, args.dy.shape, [&](std::int64_t c) {
    data_gradients<T, mask>(args, c, adds, parameter_gradients<T, mask>(args, c, adds_dw), count_of(args.dy.shape, 1));
  });
}

/// Leaves the gradients of this rank's part, which are also those of its scale and shift.
template <class T, Mask mask>
void leave_gradients(ThreadPool& pool, const Args& args, bool adds_dw) {
  split_channels(pool, args.dy.shape,
                 [&](std::int64_t c) { joint_pair(args.scratch, c) = parameter_gradients<T, mask>(args, c, adds_dw); });
}

template <class T, Mask mask>
void backward_of_ranks(ThreadPool& pool, const Args& args, const std::array<bool, 2>& adds, int ranks) {
  split_channels(pool, args.dy.shape, [&](std::int64_t c) {
    data_gradients<T, mask>(args, c, adds, joint_pair(args.scratch, c), count_of(args.dy.shape, ranks));
  });
}

}  // namespace

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, const Context& context) {
  const NormTail tail = norm_tail(spec);
  Lowered unit = norm_unit(spec, tail);
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const auto emit = [&](std::vector<Pass> passes, auto function) {
      unit.steps.push_back(step(std::move(passes), "direct", function));
    };
    if (spec.mode == Mode::inference) {
      unit.prepared_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Affine<T>);
      emit({Pass::prepare}, [op](const Args& args) { prepare<T>(args, op); });
      emit({Pass::forward}, [&pool, tail](const Args& args) { forward_inference<T>(pool, args, tail); });
      return;
    }
    /// A call whose sums the caller adds up, before the one that follows.
    const auto emit_sums = [&](Pass pass, auto function) {
      emit({pass}, function);
      unit.steps.back().cross_rank_sums = 2 * std::int64_t{spec.y.shape.c};
    };
    const bool of_ranks = op.ranks > 1;
    unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Statistics);
    if (of_ranks) {
      unit.scratch_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Pair);
      emit_sums(Pass::forward, [&pool, op](const Args& args) { leave_statistics<T>(pool, args, op); });
      emit({Pass::forward}, [&pool, op, tail](const Args& args) { forward_of_ranks<T>(pool, args, op, tail); });
    } else {
      emit({Pass::forward}, [&pool, op, tail](const Args& args) { forward_training<T>(pool, args, op, tail); });
    }
    emit({Pass::recompute}, [&pool, tail](const Args& args) {
      split_channels(pool, args.y.shape, [&](std::int64_t c) {
        write_channel(args, tail, affine_of<T>(args, saved_statistics(args, c), c), c);
      });
    });
    const auto emit_backward = [&]<Mask mask>() {
      const std::array<bool, 2> adds = {adds_dx(spec, 0), adds_dx(spec, 1)};
      if (of_ranks) {
        emit_sums(Pass::backward_params,
                  [&pool, adds_dw = spec.adds_dw](const Args& args) { leave_gradients<T, mask>(pool, args, adds_dw); });
        emit({Pass::backward_data}, [&pool, adds, ranks = op.ranks](const Args& args) {
          backward_of_ranks<T, mask>(pool, args, adds, ranks);
        });
        return;
      }
      emit({Pass::backward_params, Pass::backward_data},
           [&pool, adds, adds_dw = spec.adds_dw](const Args& args) { backward<T, mask>(pool, args, adds, adds_dw); });
    };
    switch (mask_of(tail)) {
      case Mask::none: emit_backward.template operator()<Mask::none>(); break;
      case Mask::from_y: emit_backward.template operator()<Mask::from_y>(); break;
      case Mask::from_x: emit_backward.template operator()<Mask::from_x>(); break;
    }
  });
  return unit;
}

}  // namespace lamina::eigen
