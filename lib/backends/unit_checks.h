#pragma once
// Which units the backends of our own code take: what they refuse alike, and what they fuse alike.

#include <cstddef>
#include <string>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// Throws Unsupported unless products are strict and every tensor of the unit is nchw and has the type of y.
/// `check_type` throws for a type that the backend lacks. `backend` starts the messages.
void check_strict_nchw(const std::string& backend, const Spec&, const Choice&, void (*check_type)(DType));

/// Whether `next` may follow an op and the first `count` ops of its tail: an Add and a ReLU after a batch norm, a ReLU
/// after products and sums, and in inference what conv_tail.h has.
bool usual_join(const Op&, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode);

/// Throws Unsupported for an op of the tail that may not follow those before it.
void check_tail(const std::string& backend, const Spec&, decltype(usual_join)* joins);

}  // namespace lamina
