#pragma once
// What may follow a convolution in its unit: in inference a batch norm, an Add and a ReLU, in training a ReLU.

#include <cstddef>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// The ops that follow, in this order.
struct ConvTail {
  const BatchNorm* norm = nullptr;  ///< of the spec; null: none
  bool add = false;                 ///< of x[1]
  bool relu = false;
};

ConvTail conv_tail(const Spec&);

/// Whether, in inference, `next` may follow a convolution and the first `count` ops of its tail: each kind at most once
/// and in the order above.
bool joins_inference(const std::vector<Op>& tail, std::size_t count, const Op& next);

}  // namespace lamina
