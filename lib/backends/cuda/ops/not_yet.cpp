// Ops that this backend does not have yet. Each leaves this file when it gets its own.

#include "../common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

[[noreturn]] void refuse_for_now(const Spec& spec) {
  throw Unsupported(std::string(Machine::backend_name()) + " has no " + std::string(op_name(spec.op)) + " yet");
}

}  // namespace

Lowered lower(const Lstm&, const Spec& spec, const Choice&, Machine&) { refuse_for_now(spec); }

}  // namespace lamina::LAMINA_CUDA_SPACE
