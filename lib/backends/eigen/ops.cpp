// The functions of one instruction set. Compiled, like the ops, once for each set, with LAMINA_SET_NAME and LAMINA_SET.

#include <type_traits>
#include <variant>

#include "lib/backends/eigen/half/conversions.h"
#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {
namespace {

Lowered lower_op(const Spec& spec, const Choice& choice, const Context& context) {
  return std::visit(
      [&]<class Kind>(const Kind& op) -> Lowered {
        if constexpr (requires { algorithm_table(op); }) {
          return Chooser(algorithm_table(op), spec, context, context.halves).lower(choice);
        } else if constexpr (std::is_same_v<Kind, Input>) {
          throw UsageError("eigen: an input computes nothing to be lowered");
        } else {
          return lower(op, spec, choice, context);
        }
      },
      spec.op);
}

std::vector<std::string> algorithms_of(const Spec& spec, Pass pass, const Context& context) {
  return std::visit(
      [&](const auto& op) {
        std::vector<std::string> names;
        if constexpr (requires { algorithm_table(op); })
          names = Chooser(algorithm_table(op), spec, context, context.halves).names(pass);
        return names;
      },
      spec.op);
}

}  // namespace

extern const InstructionSet LAMINA_SET;
const InstructionSet LAMINA_SET = {
    LAMINA_SET_NAME,   micro_kernels_f32, micro_kernels_f64, kernels_6x2_f32, kernels_6x2_f64, register_sums_f32,
    register_sums_f64, lower_op,          algorithms_of,     update,          check_overflow,  convert};

}  // namespace lamina::eigen
