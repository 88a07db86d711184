#pragma once
// Checks and fusions that backends share.

#include <cstddef>
#include <string>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// Throws Unsupported unless the unit's tensors are all f64, all f32, or values of one half type and other tensors of
/// f32: see parameter_dtype(). Also throws for an input whose type does not hold all its labels or ids exactly, and
/// UsageError for the op Input, which computes nothing. `backend` starts the messages.
void check_types(const std::string& backend, const Spec&);

/// Throw Unsupported if the unit is one rank's part of a batch. For backends that compute on whole batches only.
void check_whole_batch(const std::string& backend, const Dropout&);
void check_whole_batch(const std::string& backend, const BatchNorm&);

// Throw Unsupported: check_strict if the math is not strict, check_nchw if a tensor is not in nchw, check_one_layout if
// the tensors have two layouts. `backend` starts the message.
void check_strict(const std::string& backend, const Choice&);
void check_nchw(const std::string& backend, const Spec&);
void check_one_layout(const std::string& backend, const Spec&);

/// Whether `next` may follow an op and the first `count` ops of its tail. After a batch norm: an Add, an Add and a
/// ReLU, or a function. After an Add: a function; in training its gradient must read y. After a fully connected op or a
/// convolution: a ReLU, in inference any function (convolutions: see joins_inference()).
bool default_fusion(const Op&, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode);

/// Throws Unsupported for an op of the tail that may not follow the ops before it.
void check_tail(const std::string& backend, const Spec&, decltype(default_fusion)* joins);

}  // namespace lamina
