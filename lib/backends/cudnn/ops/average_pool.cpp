// The mean of each window.

#include "pool.h"

namespace lamina::cudnn {

Lowered lower(const AveragePool& op, const Spec& spec, const Choice& choice, Session& session) {
  const int mode = op.count_padding ? pooling_mode::average_with_padding : pooling_mode::average_without_padding;
  return lower_pooling(op, spec, choice, session, mode, {op.window, op.stride, op.pad});
}

}  // namespace lamina::cudnn
