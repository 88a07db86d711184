// Ops that this backend does not have yet. Each leaves this file when it gets its own.

#include "../runtime/common.h"

namespace lamina::eigen {
namespace {

[[noreturn]] void refuse_for_now(const Spec& spec) {
  throw Unsupported("eigen has no " + std::string(op_name(spec.op)) + " yet");
}

}  // namespace

Lowered lower(const Lstm&, const Spec& spec, const Choice&, const Context&) { refuse_for_now(spec); }

}  // namespace lamina::eigen
