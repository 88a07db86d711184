#pragma once
// A convolution and the ops that follow it in its unit: one description for all backends and algorithms. A batch norm,
// an Add and a function may follow in inference, a ReLU in training.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

/// A unit without its addresses and pitches. A fully connected op is the convolution whose kernel is the whole plane.
struct ConvUnit {
  Conv op;
  Shape x, y;
  DType dtype = DType::f32;   ///< type of the computation: f32 for values of half precision
  DType values = DType::f32;  ///< type of all values; `dtype` if they have several types
  bool inference = false;
  bool relu = false;                         ///< whether a ReLU follows: then dy is masked by y > 0
  bool add = false;                          ///< inference: whether x[1] is added before the ReLU
  bool folded = false;                       ///< inference: whether a batch norm follows
  double epsilon = 0;                        ///< epsilon of the folded batch norm
  std::optional<Pointwise> activation = {};  ///< inference: the function that follows, if it is not a ReLU
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

/// Whether `next` may follow a convolution and the first `count` ops of its tail in inference. The order is batch norm,
/// Add, function, each at most once. After an Add the function must be a ReLU or a clip, because the Winograd algorithm
/// of eigen applies other functions before it adds.
bool joins_inference(const std::vector<Op>& tail, std::size_t count, const Op& next);

/// The reason why Winograd's algorithm cannot run a convolution: "takes stride 1, not 2x2". Empty: it can. `tile` is 2
/// or 4, for tiles of 2 x 2 or 4 x 4 results.
std::string winograd_refusal(const Conv&, int tile);

}  // namespace lamina
