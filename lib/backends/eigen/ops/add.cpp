// y = the sum of the inputs, or f(sum) if the unit's tail has a function f. The gradient of every input is dy or, with
// a function, dy f'(sum), which is computed from y.

#include "lib/backends/eigen/pointwise/activation.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t chunk = 2048;  // elements; they stay in cache for all inputs or gradients

/// A ReLU is applied to each sum at once; another function takes a chunk of sums.
template <class T>
void forward(ThreadPool& pool, const Args& args, bool relu, const Activation<T>* function) {
  with_flag(relu, [&](auto clips) {
    split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
      T* y = image<T>(args.y, n);
      T sums[chunk];  // y may share the memory of any input, also of a later one
      for (std::int64_t at = first; at < last; at += chunk) {
        const std::int64_t count = std::min(chunk, last - at);
        const T* a = image<const T>(args.x[0], n) + at;
        const T* b = image<const T>(args.x[1], n) + at;
        const std::size_t inputs = args.x.size();
        T* to = inputs == 2 ? y + at : sums;
        LAMINA_INDEPENDENT
        for (std::int64_t i = 0; i < count; ++i) {
          const T sum = a[i] + b[i];
          to[i] = clips && inputs == 2 && sum <= 0 ? T(0) : sum;
        }
        for (std::size_t k = 2; k < inputs; ++k) {
          const T* x = image<const T>(args.x[k], n) + at;
          for (std::int64_t i = 0; i < count; ++i) sums[i] += x[i];
        }
        if (inputs > 2)
          for (std::int64_t i = 0; i < count; ++i) y[at + i] = clips && sums[i] <= 0 ? T(0) : sums[i];
        if (!clips && function != nullptr) function->forward(y + at, y + at, count);
      }
    });
  });
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const std::vector<bool>& adds, const Activation<T>* function) {
  split_images(pool, args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const T* dy = image<const T>(args.dy, n);
    for (std::int64_t at = first; at < last; at += chunk) {
      const std::int64_t count = std::min(chunk, last - at);
      for (const bool in_place : {false, true}) {  // a dx in dy's memory comes last
        for (std::size_t k = 0; k < args.dx.size(); ++k) {
          if (!args.dx[k] || same_place(args.dx[k], args.dy) != in_place) continue;
          T* dx = image<T>(args.dx[k], n) + at;
          if (function != nullptr) {
            function->gradient(dx, image<const T>(args.y, n) + at, dy + at, count, adds[k]);
          } else if (!in_place || adds[k]) {
            put(dx, dy + at, count, adds[k]);
          }
        }
      }
    }
  });
}

}  // namespace

Lowered lower(const Add&, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  std::vector<bool> adds(spec.x.size());
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    allow_in_place(unit, spec, i);
    unit.dx_is_dy[i] = spec.tail.empty();
    adds[i] = adds_dx(spec, i);
  }
  unit.backward_reads_y = !spec.tail.empty();
  return with_type(spec.y.dtype, [&]<class T>() {
    const auto function = spec.tail.empty() ? nullptr : activation<T>(spec.tail[0], context.set);
    return with_steps(
        unit, spec,
        [&pool = context.pool, relu = ends_in_relu(spec), function](const Args& args) {
          forward<T>(pool, args, relu, function.get());
        },
        [&pool = context.pool, adds, function](const Args& args) { backward<T>(pool, args, adds, function.get()); });
  });
}

}  // namespace lamina::eigen
