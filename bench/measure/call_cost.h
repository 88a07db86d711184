#pragma once
// What a call of a plan costs at least: the arithmetic of its ops, and the bytes that cross its border.

#include <vector>

#include "workshop.h"

namespace lamina::bench {

/// Operations are the sum over the call's nodes and passes, as `cost` has them. Bytes are those of every tensor outside
/// the call that its passes need, each once, however often a kernel looks at it:
///   - forward: the inputs, y, parameters and state; recompute: the inputs and y
///   - backward: dy; the wanted gradients of inputs and parameters; and what these follow from, as `cost` has it of
///     each op: the input of convolution, fully connected, batch norm and LRN, the weight, the y of ReLU and softmax
/// What lies between two nodes of a unit is never stored and counts nothing. A ReLU's mask is the y of its unit; where
/// it stands right behind a batch norm, whose input tells as well, nothing is read for it. The gradient of what is
/// added is dy itself where no ReLU stands behind, and is not moved. `wanted` is by node, as of wanted_gradients(). For
/// one node and one pass, bytes are those of `cost`.
Cost call_cost(const Call&, const Graph&, const std::vector<bool>& wanted, DType);

/// The sums over a plan's calls.
GraphCost plan_cost(const Plan&);

}  // namespace lamina::bench
