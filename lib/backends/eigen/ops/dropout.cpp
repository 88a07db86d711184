// y = x * mask / (1 - rate). The mask is drawn from counters, so forward saves only the number of the step.

#include <cmath>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/random_words.h"

namespace lamina::eigen {
namespace {

constexpr int counters = 32;
constexpr std::int64_t words_at_once = 4 * counters;

/// The parameters of a mask: an element is dropped if its word is below `threshold`.
struct Mask {
  std::uint64_t key;
  std::uint64_t threshold;
  double scale;
  std::int64_t batch_offset;

  explicit Mask(const Dropout& op)
      : key(op.seed),
        threshold(static_cast<std::uint64_t>(std::ceil(op.rate * 4294967296.0))),
        scale(1 / (1 - op.rate)),
        batch_offset(op.batch_offset) {}
};

/// to = from * mask, or to += from * mask, for elements [first, last) of image n.
template <class T>
void apply(const Mask& mask, std::uint64_t step, std::int64_t before, T* to, const T* from, std::int64_t first,
           std::int64_t last, bool adds) {
  std::uint32_t words[words_at_once];
  const T kept = static_cast<T>(mask.scale);
  for (std::int64_t at = first; at < last;) {
    const std::int64_t element = before + at;  // index in the batch of all ranks
    const std::int64_t skipped = element % 4;
    random_words<counters>(mask.key, static_cast<std::uint64_t>(element / 4), step, words);
    const std::int64_t count = std::min(last - at, words_at_once - skipped);
    const std::uint32_t* word = words + skipped;
    put_each(to + at, count, adds, [=, x = from + at, threshold = mask.threshold](std::int64_t i) {
      return x[i] * (word[i] < threshold ? T(0) : kept);
    });
    at += count;
  }
}

template <class T>
void run(ThreadPool& pool, const Mask& mask, std::uint64_t step, const Tensor& to, const Tensor& from, bool adds) {
  split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    apply(mask, step, (mask.batch_offset + n) * to.shape.image(), image<T>(to, n), image<const T>(from, n), first, last,
          adds);
  });
}

template <class T>
void copy(ThreadPool& pool, const Args& args) {
  if (same_place(args.y, args.x[0])) return;
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    put(image<T>(args.y, n) + first, image<const T>(args.x[0], n) + first, last - first, false);
  });
}

}  // namespace

Lowered lower(const Dropout& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  const auto emit = [&](Pass pass, auto function) { unit.steps.push_back(step({pass}, "direct", function)); };
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    if (spec.mode == Mode::inference) {
      emit(Pass::forward, [&pool](const Args& args) { copy<T>(pool, args); });
      return;
    }
    unit.saved_bytes = sizeof(std::uint64_t);
    unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
    const Mask mask(op);
    emit(Pass::forward, [&pool, mask](const Args& args) {
      std::uint64_t& next = *args.state[0].as<std::uint64_t>();
      std::uint64_t& now = *static_cast<std::uint64_t*>(args.saved);
      now = next++;
      run<T>(pool, mask, now, args.y, args.x[0], false);
    });
    emit(Pass::recompute, [&pool, mask](const Args& args) {
      run<T>(pool, mask, *static_cast<const std::uint64_t*>(args.saved), args.y, args.x[0], false);
    });
    emit(Pass::backward_data, [&pool, mask, adds = adds_dx(spec, 0)](const Args& args) {
      if (!wanted(args, 0)) return;
      run<T>(pool, mask, *static_cast<const std::uint64_t*>(args.saved), args.dx[0], args.dy, adds);
    });
  });
  return unit;
}

}  // namespace lamina::eigen
