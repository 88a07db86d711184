#pragma once
// Helpers for the ops' files: the session of a unit, descriptors from specs, factors in the library's types.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "call.h"
#include "lamina/backend.h"
#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/core/text/one_of.h"
#include "session.h"

namespace lamina::cudnn {

/// What the calls of a unit need: the session that they are made in, its library, and the type of the unit's values.
struct Calls {
  Session& session;
  const Api& api;
  DType dtype;

  Calls(Session& in, DType values) : session(in), api(in.api()), dtype(values) {}
};

/// A descriptor of a tensor with its pitch. Throws Unsupported if a stride exceeds an int.
TensorDescriptor describe(const Api&, const Shape&, DType, Layout, std::int64_t pitch);
TensorDescriptor describe_value(const Api&, const TensorSpec&);
TensorDescriptor describe_gradient(const Api&, const TensorSpec&);
/// A tensor with one number per channel, {1, c, 1, 1}. Its strides are c, 1, 1, 1, whatever layout other tensors have.
TensorDescriptor describe_dense(const Api&, const TensorSpec&);
/// The calls of an op with one input, and its descriptors.
struct Ends : Calls {
  TensorDescriptor x, y, dx, dy;
  Ends(const Spec& spec, Session& in)
      : Calls(in, spec.y.dtype),
        x(describe_value(api, spec.x[0])),
        y(describe_value(api, spec.y)),
        dx(describe_gradient(api, spec.x[0])),
        dy(describe_gradient(api, spec.y)) {}
};

FilterDescriptor describe_filter(const Api&, const TensorSpec&);
ActivationDescriptor describe_activation(const Api&, int mode, int nans = nan::propagate);

int data_type_of(DType);     ///< throws Unsupported for types that this backend lacks
int compute_type_of(DType);  ///< type in which sums of such values are computed: f32 for halves

/// Whether values and gradients are without gaps, as most calls of the library and all graphs need them.
bool is_dense(const Spec&);

/// Rows or columns that an image must have so that its windows stay within it and its padding; at least `extent`.
inline int covered(int extent, int windows, int window, int stride, int pad) {
  return std::max(extent, (windows - 1) * stride + window - 2 * pad);
}

/// Suffix of the name of an algorithm that computes several ops at once: a forward call with bias and ReLU, or an
/// engine of a data gradient with the mask of the ReLU before the unit.
constexpr std::string_view fused_suffix = "+fused";

/// Throws Unsupported for tf32 with a type other than f32. `unit` starts the message.
void check_math(const std::string& unit, DType, Math);

/// Host numbers in the type of the library's scaling factors for tensors of `dtype`: double for f64, else float.
const void* one(DType);
const void* zero(DType);
inline const void* beta(DType dtype, bool adds) { return adds ? one(dtype) : zero(dtype); }

/// Bytes of a tensor with this pitch, including the gap behind the last image or, in nhwc, behind the last pixel.
std::size_t extent_bytes(const TensorSpec&, std::int64_t pitch);

/// Throws Unsupported: "cudnn: <op>: <reason>".
[[noreturn]] void refuse(const Op&, const std::string& reason);

// One function per op, in the op's file or below. Each fills every vector of Lowered with one entry per x, and adds
// steps for the passes of spec.mode only. The algorithm's name is "direct" if the library offers only one.
Lowered lower(const Conv&, const Spec&, const Choice&, Session&);
Lowered lower(const MaxPool&, const Spec&, const Choice&, Session&);
Lowered lower(const AveragePool&, const Spec&, const Choice&, Session&);
Lowered lower(const GlobalAveragePool&, const Spec&, const Choice&, Session&);
Lowered lower(const BatchNorm&, const Spec&, const Choice&, Session&);
Lowered lower(const Lrn&, const Spec&, const Choice&, Session&);
Lowered lower(const Relu&, const Spec&, const Choice&, Session&);
Lowered lower(const ConvTranspose&, const Spec&, const Choice&, Session&);
Lowered lower(const FullyConnected&, const Spec&, const Choice&, Session&);
Lowered lower(const Softmax&, const Spec&, const Choice&, Session&);
Lowered lower(const Pointwise&, const Spec&, const Choice&, Session&);
Lowered lower(const Recurrent&, const Spec&, const Choice&, Session&);
Lowered lower(const Add&, const Spec&, const Choice&, Session&);

/// Whether the library computes the function. Our kernels compute the others.
inline bool is_of_library(const Pointwise& op) {
  return op.function == Function::sigmoid || op.function == Function::tanh;
}

/// Ops that the kernels of the backend cuda compute. The library lacks most of them. For the others docs/cudnn.md says
/// why its calls are not used.
template <class AnyOp>
concept OpOfOurKernels = OneOf<AnyOp, Binary, ScaleShift, PRelu, Pad, Resize, Reorder, Reduce, GroupNorm, LayerNorm,
                               SoftmaxCrossEntropy, SigmoidCrossEntropy, Embedding, Dropout, Concat, Slice>;
Lowered lower(const OpOfOurKernels auto&, const Spec& spec, const Choice&, Session& session) {
  return session.machine().lower_by_kernels(spec);
}

/// The algorithms of a recurrent op, best guess first.
std::vector<std::string> recurrent_algorithms(const Spec&);

}  // namespace lamina::cudnn
