// Ops that the library lacks: the kernels of the backend cuda compute them.

#include "../library/common.h"

namespace lamina::cudnn {

Lowered lower(const SoftmaxCrossEntropy&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const SigmoidCrossEntropy&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const Embedding&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}

}  // namespace lamina::cudnn
