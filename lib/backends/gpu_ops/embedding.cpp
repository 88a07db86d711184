// Replaces each id by a row of a table. The gradient of the table is dense.

#include "kernels/embedding.h"

#include <limits>

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Embedding& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const std::int64_t ids = spec.x[0].shape.count();
  if (ids > std::numeric_limits<int>::max())
    throw Unsupported(on.backend + ": " + to_string(spec.op) + " of " + std::to_string(ids) +
                      " ids; it takes fewer than 2^31");
  unit.backward_reads_x[0] = true;
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    const auto forward = [rows = op.vocabulary](Stream stream, const Args& args) {
      embedding_forward(stream, view<const T>(args.x[0]), args.w[0].as<const T>(), rows, view<T>(args.y));
    };
    const auto backward = [rows = op.vocabulary, adds = spec.adds_dw](Stream stream, const Args& args) {
      embedding_backward(stream, view<const T>(args.x[0]), view<const T>(args.dy),
                         static_cast<PlaceOfRow*>(args.workspace), args.dw[0].as<T>(), rows, adds);
    };
    return with_launches(unit, spec, on, forward, backward, 0, 2 * static_cast<std::size_t>(ids) * sizeof(PlaceOfRow),
                         std::vector{Pass::backward_params});
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
