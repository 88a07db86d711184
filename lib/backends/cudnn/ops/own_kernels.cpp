// Ops that the kernels of the backend cuda compute. The library lacks most of them; docs/cudnn.md says what it has of
// the others, and why it is not used.

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

Lowered lower(const Clip&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const HardSigmoid&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const HardSwish&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const Silu&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const Multiply&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const SpacePool&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const Pad&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
Lowered lower(const ChannelShuffle&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}
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
