// What may follow a convolution in its unit.

#include "conv_tail.h"

#include <variant>

namespace lamina {
namespace {

/// The position of an op in the order of the tail; 0: it may not follow.
int rank(const Op& op) {
  if (std::holds_alternative<BatchNorm>(op)) return 1;
  if (std::holds_alternative<Add>(op)) return 2;
  return std::holds_alternative<Relu>(op) ? 3 : 0;
}

}  // namespace

ConvTail conv_tail(const Spec& spec) {
  ConvTail tail;
  for (const Op& op : spec.tail) {
    if (const auto* const norm = std::get_if<BatchNorm>(&op)) tail.norm = norm;
    tail.add |= std::holds_alternative<Add>(op);
    tail.relu |= std::holds_alternative<Relu>(op);
  }
  return tail;
}

bool joins_inference(const std::vector<Op>& tail, std::size_t count, const Op& next) {
  return rank(next) > (count == 0 ? 0 : rank(tail[count - 1]));
}

}  // namespace lamina
