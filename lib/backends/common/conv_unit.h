#pragma once
// A convolution and what follows it in its unit, as every backend and algorithm describes it. In inference a batch
// norm, an Add and a ReLU may follow, in training a ReLU.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// A unit with everything known but addresses and pitches. A fully connected op is the convolution whose kernel is the
/// whole plane.
struct ConvUnit {
  Conv op;
  Shape x, y;
  DType dtype = DType::f32;   ///< type that it is computed in: f32 for values of half precision
  DType values = DType::f32;  ///< type of all values; `dtype` where they have several
  bool inference = false;
  bool relu = false;    ///< negative sums become 0, and dy counts only where y is above 0
  bool add = false;     ///< inference: x[1] is added before the ReLU
  bool folded = false;  ///< inference: a batch norm follows
  double epsilon = 0;   ///< with folded: the batch norm's
  bool add_dx = false, add_dw = false;

  int group_channels() const { return x.c / op.groups; }  ///< channels of x in a group
  int group_filters() const { return y.c / op.groups; }
  std::int64_t filter_weights() const { return std::int64_t{group_channels()} * op.kernel.h * op.kernel.w; }
  std::int64_t weights() const { return y.c * filter_weights(); }
  bool has_bias() const { return op.bias || folded; }
};

/// The description of a unit whose op is a Conv or a FullyConnected.
ConvUnit conv_unit(const Spec&);

/// Number of terms of one sum of a pass.
double terms(const ConvUnit&, Pass);

/// Whether, in inference, `next` may follow a convolution and the first `count` ops of its tail: each kind at most once
/// and in the order above.
bool joins_inference(const std::vector<Op>& tail, std::size_t count, const Op& next);

}  // namespace lamina
