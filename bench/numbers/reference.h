#pragma once
// Exact results of a convolution or fully connected op, computed by the definition in f64, and the error of a pass
// against them. Only a sample of the elements is computed, because all elements of a large layer would take minutes.

#include <cstdint>
#include <vector>

#include "lamina/backend.h"
#include "lamina/op.h"

namespace lamina::bench {

/// The inputs of a pass, dense in n, c, h, w: x, w and the bias, if there is one, for forward; w and dy for
/// backward_data; x and dy for backward_params. Inputs that a pass does not need may be empty.
struct Operands {
  std::vector<double> x, w, bias, dy;
};

/// The exact values of some elements of a result: y, dx, or the gradient of the weight.
struct Reference {
  std::vector<std::int64_t> elements;  ///< places of the elements, dense in n, c, h, w
  std::vector<double> exact;
  std::vector<double> terms;  ///< sum of |terms| of each element: bias and products
};

/// Whether the op has a reference.
bool has_reference(const Op&);

/// Needs has_reference(op). The reference has at most 4096 elements. If they take over 2^27 products, it has fewer, but
/// at least 256. If the result has no more elements than this, the reference has all. Otherwise it has the corners of
/// the first and the last plane, and random elements, which are the same every time.
Reference make_reference(const Op&, const Shape& x, Pass, const Operands&);

/// The error of a result against the reference.
struct ErrorFound {
  double of_terms = 0;       ///< greatest |computed - exact| / (sum of |terms|), as in Choice::max_error
  double of_largest = 0;     ///< greatest |computed - exact| / greatest |exact|
  std::size_t elements = 0;  ///< number of elements compared
};

/// The error of `computed`, which holds the reference's elements in the same order. Any NaN is an infinite error.
ErrorFound compare(const Reference&, const std::vector<double>& computed);

std::vector<double> values_of(Device&, const Tensor&);

/// The results of a pass: y, the gradients of parameters, or the gradients of inputs.
std::vector<Tensor> results_of(Pass, const Args&);

/// A hash of the bits of all tensors. A null tensor has no bits.
std::uint64_t bits_of(Device&, const std::vector<Tensor>&);

/// The reference of a pass of a convolution or fully connected op, and the error of the pass's result: y, dx, or the
/// gradient of the weight.
Reference reference_of(Device&, const Op&, Pass, const Args&);
ErrorFound error_of(Device&, Pass, const Args&, const Reference&);

}  // namespace lamina::bench
