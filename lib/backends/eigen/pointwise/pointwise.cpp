// Ops whose y is one function of x, element by element, as units of their own.

#include "rows.h"

namespace lamina::eigen {
namespace {

/// The unit of a pointwise op; it may work in place.
template <class Rows>
Lowered lower_pointwise(const Spec& spec, ThreadPool& pool, const Rows& rows) {
  const Reads reads = rows.reads;
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_x[0] = reads == Reads::x;
  unit.backward_reads_y = reads == Reads::y;
  with_type(spec.y.dtype, [&]<class T>() {
    const auto forward = [&pool, rows](const Args& args) {
      split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
        rows.forward(image<T>(args.y, n) + first, image<const T>(args.x[0], n) + first, last - first);
      });
    };
    add_steps(unit, spec, forward, [&pool, rows, reads, adds = adds_dx(spec, 0)](const Args& args) {
      if (!wanted(args, 0)) return;
      with_flag(adds, [&](auto add) {
        split_images(pool, args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
          const T* const v = image<const T>(reads == Reads::x ? args.x[0] : args.y, n);
          rows.template backward<add>(image<T>(args.dx[0], n) + first, v + first, image<const T>(args.dy, n) + first,
                                      last - first);
        });
      });
    });
  });
  return unit;
}

}  // namespace

Lowered lower(const Relu& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const Sigmoid& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const Tanh& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const Clip& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const HardSigmoid& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const HardSwish& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}
Lowered lower(const Silu& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, rows_of(op, context.set));
}

}  // namespace lamina::eigen
