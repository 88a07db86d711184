// Ops that the kernels of the backend cuda compute. The library lacks most of them. It has a clipped ReLU, a swish and
// a product of tensors, but does not say which gradient a clip has at its limits, nor gives a clip's from y alone, and
// the sums of a product over planes would be a further call with memory of its own.

#include "../library/common.h"

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
