// Means, sums and maxima over axes of an image. In training forward saves the places of maxima.

#include "kernels/reduce.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Reduce& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const CellsAlong of = cells_along(along(spec.x[0].shape, op));
  const bool largest = op.by == ReduceBy::max;
  const double divisor = op.by == ReduceBy::mean ? static_cast<double>(of.repeats) * of.cells : 1;
  if (largest && spec.mode == Mode::training)
    unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(std::int32_t);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        unit, spec, on,
        [of, largest, divisor](Stream stream, const Args& args) {
          const View<const T> x = view<const T>(args.x[0]);
          if (largest)
            reduce_max(stream, x, of, view<T>(args.y), static_cast<std::int32_t*>(args.saved));
          else
            reduce_sum(stream, x, of, divisor, view<T>(args.y));
        },
        to_dx(spec, [of, largest, divisor](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          reduce_backward(stream, view<const T>(args.dy), of, divisor,
                          largest ? static_cast<const std::int32_t*>(args.saved) : nullptr, view<T>(dx), adds);
        }));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
