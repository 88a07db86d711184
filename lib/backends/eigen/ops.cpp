// The functions of one instruction set. Compiled, like the ops, once for each set, with LAMINA_SET_NAME and LAMINA_SET.

#include <variant>

#include "lib/backends/eigen/half/conversions.h"
#include "lib/backends/eigen/runtime/common.h"
#include "lib/core/text/one_of.h"

namespace lamina::eigen {
namespace {

Lowered lower_op(const Spec& spec, const Choice& choice, const Context& context) {
  return std::visit(
      [&]<class Kind>(const Kind& op) -> Lowered {
        if constexpr (OneOf<Kind, Input, Conv, FullyConnected>)
          throw UsageError("eigen: " + to_string(spec.op) + " has no kernels");
        else
          return lower(op, spec, choice, context);
      },
      spec.op);
}

}  // namespace

extern const InstructionSet LAMINA_SET;
const InstructionSet LAMINA_SET = {LAMINA_SET_NAME,
                                   {micro_kernels_f32, kernels_6x2_f32, register_sums_f32},
                                   {micro_kernels_f64, kernels_6x2_f64, register_sums_f64},
                                   lower_op,
                                   conv_table,
                                   connected_table,
                                   update,
                                   check_overflow,
                                   convert};

}  // namespace lamina::eigen
