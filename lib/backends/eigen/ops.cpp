// The functions of one instruction set. Compiled, like the ops, once for each set, with LAMINA_SET_NAME and LAMINA_SET.

#include <variant>

#include "lib/backends/eigen/half/conversions.h"
#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

/// An op with several algorithms.
template <class T>
concept HasTable = requires(const T& op) {
  algorithm_table(op);
};

Lowered lower_op(const Spec& spec, const Choice& choice, const Context& context) {
  return std::visit(
      Overloaded{[](const Input&) -> Lowered { throw UsageError("eigen: an input computes nothing to be lowered"); },
                 [&](const HasTable auto& op) {
                   return Chooser(algorithm_table(op), spec, context, context.halves).lower(choice);
                 },
                 [&](const auto& op) { return lower(op, spec, choice, context); }},
      spec.op);
}

std::vector<std::string> algorithms_of(const Spec& spec, Pass pass, const Context& context) {
  return std::visit(Overloaded{[&](const HasTable auto& op) {
                                 return Chooser(algorithm_table(op), spec, context, context.halves).names(pass);
                               },
                               [](const auto&) { return std::vector<std::string>{}; }},
                    spec.op);
}

}  // namespace

extern const InstructionSet LAMINA_SET;
const InstructionSet LAMINA_SET = {
    LAMINA_SET_NAME,   micro_kernels_f32, micro_kernels_f64, kernels_6x2_f32, kernels_6x2_f64, register_sums_f32,
    register_sums_f64, lower_op,          algorithms_of,     update,          check_overflow,  convert};

}  // namespace lamina::eigen
