// The mean of each plane: one window as large as the plane.

#include "pool.h"

namespace lamina::cudnn {

Lowered lower(const GlobalAveragePool& op, const Spec& spec, const Choice& choice, Session& session) {
  const Size plane(spec.x[0].shape.h, spec.x[0].shape.w);
  return lower_pooling(op, spec, choice, session, pooling_mode::average_without_padding, {plane, plane, 0});
}

}  // namespace lamina::cudnn
