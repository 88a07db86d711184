// The maximum of each window, in the mode whose gradient has the same bits on every run.

#include "pool.h"

namespace lamina::cudnn {

Lowered lower(const MaxPool& op, const Spec& spec, const Choice& choice, Session& session) {
  return lower_pooling(op, spec, choice, session, pooling_mode::max_deterministic, {op.window, op.stride, op.pad});
}

}  // namespace lamina::cudnn
