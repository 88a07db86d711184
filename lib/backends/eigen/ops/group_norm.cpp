// Group normalisation, group by group of each image, by the functions of batch normalisation: the planes of a group are
// read from memory once and stay in cache for the second pass.

#include "lib/backends/eigen/ops/norm/backward.h"
#include "lib/backends/eigen/ops/norm/forward.h"

namespace lamina::eigen {
namespace batch_norm {
namespace {

/// Calls work(i, group) for every group: i is its number, counted image by image, and `group` is its planes.
template <class Work>
void split_groups(ThreadPool& pool, const Shape& shape, int groups, Work&& work) {
  const std::int64_t channels = shape.c / groups;
  pool.each(std::int64_t{shape.n} * groups, 1, [&](std::int64_t i) {
    work(i, Part{i / groups, i / groups + 1, i % groups * channels, channels});
  });
}

/// Calls work(c, plane) for every channel of a group.
template <class Work>
void for_each_plane(const Part& group, Work&& work) {
  for (std::int64_t c = group.c; c < group.c + group.channels; ++c) work(c, Part{group.first, group.last, c});
}

template <class T>
void forward_of_groups(ThreadPool& pool, const Args& args, const GroupNorm& op) {
  split_groups(pool, args.y.shape, op.groups, [&](std::int64_t i, const Part& group) {
    const auto [mean, variance] = mean_and_variance<T>(args.x[0], group);
    const Statistics statistics = {mean, 1 / std::sqrt(variance + op.epsilon)};
    if (args.saved != nullptr) saved_statistics(args, i) = statistics;
    for_each_plane(group, [&](std::int64_t c, const Part& plane) {
      write_channel(args, Tail<T>{}, affine_of<T>(args, statistics, c), plane);
    });
  });
}

/// Leaves two sums of each plane in the workspace, of dy xh and of dy, for the gradients of scale and shift. xh is the
/// normalised x, and g is scale dy.
template <class T>
void backward_of_groups(ThreadPool& pool, const Args& args, int groups, bool adds_dx, bool adds_dw) {
  const Shape& shape = args.dy.shape;
  auto* const sums = static_cast<Pair*>(args.workspace);
  split_groups(pool, shape, groups, [&](std::int64_t i, const Part& group) {
    const Statistics& statistics = saved_statistics(args, i);
    const double inverse = statistics.inverse_deviation;
    double sum = 0, products = 0;  // of g and of g xh
    for_each_plane(group, [&](std::int64_t c, const Part& plane) {
      const Channel<T> channel{affine_of<T>(args, statistics, c), nullptr};
      const TwoSums all = gradient_sums<T, Mask::none>(args, channel, statistics.mean, plane);
      const Pair& pair = sums[group.first * shape.c + c] = {all.second() * inverse, all.first()};
      products += number_of<T>(args, 0, c) * pair.first;
      sum += number_of<T>(args, 0, c) * pair.second;
    });
    const double factor = inverse / static_cast<double>(group.channels * shape.plane());
    for_each_plane(group, [&](std::int64_t c, const Part& plane) {
      const Affine<T> affine = affine_of<T>(args, statistics, c);
      const DataGradient<T> data = {affine.factor, affine.mean, static_cast<T>(-factor * inverse * products),
                                    static_cast<T>(-factor * sum)};
      write_gradients<T, Mask::none>(args, {affine, nullptr}, data, plane, {adds_dx, false});
    });
  });
  sum_parameter_gradients<T>(args, sums, shape.n, adds_dw);
}

}  // namespace
}  // namespace batch_norm

Lowered lower(const GroupNorm& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = norm_unit(spec, {});
  const auto images = static_cast<std::size_t>(spec.y.shape.n);
  if (spec.mode == Mode::training)
    unit.saved_bytes = images * static_cast<std::size_t>(op.groups) * sizeof(batch_norm::Statistics);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        unit, spec, [&pool = context.pool, op](const Args& args) { batch_norm::forward_of_groups<T>(pool, args, op); },
        [&pool = context.pool, op, adds_dx = adds_dx(spec, 0), adds_dw = spec.adds_dw](const Args& args) {
          batch_norm::backward_of_groups<T>(pool, args, op.groups, adds_dx, adds_dw);
        },
        0, images * static_cast<std::size_t>(spec.y.shape.c) * sizeof(batch_norm::Pair), gradient_passes(spec));
  });
}

}  // namespace lamina::eigen
