// Checks and fusions that backends share.

#include "unit_checks.h"

#include <variant>

#include "conv_unit.h"
#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/core/text/shortest.h"
#include "lib/core/units/functions.h"

namespace lamina {

void check_types(const std::string& backend, const Spec& spec) {
  if (holds<Input>(spec.op)) throw UsageError(backend + ": an input computes nothing and is not lowered");
  DType values = spec.y.dtype;
  for (const TensorSpec& x : spec.x)
    if (is_half(x.dtype)) values = x.dtype;
  const auto refuse = [&](const std::string& why) {
    throw Unsupported(backend + ": " + to_string(spec.op) + ": " + why);
  };
  const auto check = [&](const TensorSpec& tensor, const std::string& what, bool may_be_half) {
    const std::string type(to_string(tensor.dtype));
    if (tensor.dtype == DType::u64)
      refuse("no " + type + "; it computes in f32 and f64, in f32 on values of f16 and bf16");
    if (tensor.dtype == parameter_dtype(values) || (may_be_half && tensor.dtype == values)) return;
    refuse(what + " of " + type + " with values of " + std::string(to_string(values)) + "; one unit takes one type" +
           (is_half(values) ? ", and f32 for parameters, labels, ids and losses" : ""));
  };
  std::vector<Shape> shapes;
  for (const TensorSpec& x : spec.x) check(x, "an input", true), shapes.push_back(x.shape);
  for (const TensorSpec& w : spec.w) check(w, "a parameter", false);
  check(spec.y, "a result", true);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double largest = static_cast<double>(whole_numbers(spec.op, shapes, i)) - 1;
    if (const double exact = 1 / unit_roundoff(spec.x[i].dtype); largest > exact)
      refuse("ids up to " + shortest(largest) + " in " + std::string(to_string(spec.x[i].dtype)) +
             ", which holds whole numbers exactly up to " + shortest(exact) + "; give them in f32");
  }
}

void check_whole_batch(const std::string& backend, const Dropout& op) {
  if (op.batch_offset != 0)
    throw Unsupported(backend + ": " + to_string(op) + ": no mask of one rank's images; several ranks train on eigen");
}

void check_whole_batch(const std::string& backend, const BatchNorm& op) {
  if (op.ranks != 1)
    throw Unsupported(backend + ": " + to_string(op) + ": no statistics over several ranks; eigen has them");
}

void check_strict(const std::string& backend, const Choice& choice) {
  if (choice.math != Math::strict)
    throw Unsupported(backend + ": no " + std::string(to_string(choice.math)) +
                      " products; it computes in strict math");
}

void check_nchw(const std::string& backend, const Spec& spec) {
  if (spec.y.layout != Layout::nchw)
    throw Unsupported(backend + ": no " + std::string(to_string(spec.y.layout)) + " layout in " +
                      std::string(to_string(spec.y.dtype)) + "; it takes nchw");
  check_one_layout(backend, spec);
}

void check_one_layout(const std::string& backend, const Spec& spec) {
  for (const std::vector<TensorSpec>* const all : {&spec.x, &spec.w})
    for (const TensorSpec& tensor : *all)
      if (tensor.layout != spec.y.layout)
        throw Unsupported(backend + ": one unit has tensors of both layouts; it takes one");
}

bool default_fusion(const Op& op, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode mode) {
  const bool conv = std::holds_alternative<Conv>(op), norm = std::holds_alternative<BatchNorm>(op);
  if (mode == Mode::inference && conv) return joins_inference(tail, count, next);
  if (std::holds_alternative<Add>(next)) return count == 0 && norm;
  if (!is_activation(next)) return false;
  const auto* const its = std::get_if<Pointwise>(&next);
  if (count > 0) return count == 1 && norm && std::holds_alternative<Add>(tail[0]) && its == nullptr;
  if (std::holds_alternative<Add>(op))
    return its == nullptr || mode == Mode::inference || !row_of(its->function).reads_x;
  return norm || (holds<Conv, FullyConnected>(op) && (its == nullptr || mode == Mode::inference));
}

void check_tail(const std::string& backend, const Spec& spec, decltype(default_fusion)* joins) {
  for (std::size_t i = 0; i < spec.tail.size(); ++i)
    if (!joins(spec.op, spec.tail, i, spec.tail[i], spec.mode))
      throw Unsupported(backend + ": " + to_string(spec.op) + " cannot be fused with the op after it: " +
                        std::string(op_name(spec.tail[i])) + " as number " + std::to_string(i + 1));
}

}  // namespace lamina
