// Which units the backends of our own code take.

#include "unit_checks.h"

#include <variant>

#include "conv_tail.h"
#include "lamina/error.h"

namespace lamina {

void check_strict_nchw(const std::string& backend, const Spec& spec, const Choice& choice, void (*check_type)(DType)) {
  if (choice.math != Math::strict)
    throw Unsupported(backend + ": no " + std::string(to_string(choice.math)) +
                      " products; it computes in strict math");
  const auto check = [&](const TensorSpec& tensor) {
    check_type(tensor.dtype);
    if (tensor.dtype != spec.y.dtype)
      throw Unsupported(backend + ": one unit has tensors of " + std::string(to_string(spec.y.dtype)) + " and " +
                        std::string(to_string(tensor.dtype)) + "; it takes one type");
    if (tensor.layout != Layout::nchw)
      throw Unsupported(backend + ": no " + std::string(to_string(tensor.layout)) + " layout; it takes nchw");
  };
  for (const TensorSpec& x : spec.x) check(x);
  for (const TensorSpec& w : spec.w) check(w);
  check(spec.y);
}

bool usual_join(const Op& op, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode mode) {
  const bool conv = std::holds_alternative<Conv>(op), norm = std::holds_alternative<BatchNorm>(op);
  if (mode == Mode::inference && conv) return joins_inference(tail, count, next);
  if (std::holds_alternative<Add>(next)) return count == 0 && norm;
  if (!std::holds_alternative<Relu>(next)) return false;
  if (count == 0) return conv || norm || std::holds_alternative<FullyConnected>(op) || std::holds_alternative<Add>(op);
  return count == 1 && norm && std::holds_alternative<Add>(tail[0]);
}

void check_tail(const std::string& backend, const Spec& spec, decltype(usual_join)* joins) {
  for (std::size_t i = 0; i < spec.tail.size(); ++i)
    if (!joins(spec.op, spec.tail, i, spec.tail[i], spec.mode))
      throw Unsupported(backend + ": " + to_string(spec.op) + " cannot be fused with the op after it: " +
                        std::string(op_name(spec.tail[i])) + " as number " + std::to_string(i + 1));
}

}  // namespace lamina
