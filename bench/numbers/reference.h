#pragma once
// Exact numbers of a convolution or fully connected op, by the definition, summed in f64, and their distance from the
// results of a pass. They are a sample, because all numbers of a large layer would take minutes.

#include <cstdint>
#include <vector>

#include "lamina/backend.h"
#include "lamina/op.h"

namespace lamina::bench {

/// The inputs of a pass, dense in n, c, h, w: x and w for forward, w and dy for backward_data, x and dy for
/// backward_params; bias where forward has one. Inputs that a pass does not need may be empty.
struct Operands {
  std::vector<double> x, w, bias, dy;
};

/// Exact numbers of some elements of a result: y, dx, or the gradient of the weight.
struct Reference {
  std::vector<std::int64_t> elements;  ///< places of the elements, dense in n, c, h, w
  std::vector<double> exact;
  std::vector<double> terms;  ///< sum of |terms| of each element: bias and products
};

/// Whether the op has a reference.
bool has_reference(const Op&);

/// Needs has_reference(op) and one of the three passes. Every element if the result has at most 4096 elements, which
/// cost at most 2^27 products. Otherwise the corners of the first and last plane, and further elements up to 4096 or
/// 2^27 products, but at least 256: drawn at random, the same every time.
Reference make_reference(const Op&, const Shape& x, Pass, const Operands&);

/// How far a result is from the reference.
struct ErrorFound {
  double of_terms = 0;    ///< greatest |computed - exact| / (sum of |terms|): what Choice::max_error limits
  double of_largest = 0;  ///< greatest |computed - exact| / greatest |exact|
  std::size_t elements = 0;
};

/// `computed` holds the reference's elements, in its order. A NaN anywhere is an infinite error.
ErrorFound compare(const Reference&, const std::vector<double>& computed);

std::vector<double> values_of(Device&, const Tensor&);

/// The results of a pass: y, the gradients of parameters, or those of inputs.
std::vector<Tensor> results_of(Pass, const Args&);

/// A hash of the bits of all tensors. A null tensor has no bits.
std::uint64_t bits_of(Device&, const std::vector<Tensor>&);

/// The reference of a pass of a convolution or fully connected op, and the error of a pass against it: of y, dx or the
/// gradient of the weight.
Reference reference_of(Device&, const Op&, Pass, const Args&);
ErrorFound error_of(Device&, Pass, const Args&, const Reference&);

}  // namespace lamina::bench
