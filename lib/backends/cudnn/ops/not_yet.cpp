// Ops that this backend does not have yet. Each leaves this file when it gets its own.

#include "../library/common.h"

namespace lamina::cudnn {
namespace {

[[noreturn]] void refuse_for_now(const Spec& spec) {
  throw Unsupported("cudnn has no " + std::string(op_name(spec.op)) + " yet");
}

}  // namespace

Lowered lower(const SoftmaxCrossEntropy&, const Spec& spec, const Choice&, Session&) { refuse_for_now(spec); }
Lowered lower(const SigmoidCrossEntropy&, const Spec& spec, const Choice&, Session&) { refuse_for_now(spec); }
Lowered lower(const Embedding&, const Spec& spec, const Choice&, Session&) { refuse_for_now(spec); }

}  // namespace lamina::cudnn
