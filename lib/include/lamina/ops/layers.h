#pragma once
// Data, convolutions, pools and fully connected layers, and types that all ops share: Size and Axis.

#include <cstdint>

#include "lamina/shape.h"

namespace lamina {

/// Two extents. Write `.kernel = 3` or `.kernel = {1, 7}`.
struct Size {
  int h, w;
  constexpr Size(int both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): implicit on purpose
  constexpr Size(int rows, int columns) : h(rows), w(columns) {}
  constexpr bool operator==(const Size&) const = default;
};

/// An axis of each image.
enum class Axis : std::uint8_t { channel, row, column };

/// The data of a network; no computation, no inputs, no parameters.
struct Input {
  Shape shape;
  bool operator==(const Input&) const = default;
};

/// y[n,k,p,q] = bias[k] + sum over c,r,s of w[k,c,r,s] * x[n, g*C/groups + c, p*stride - pad + r*dilation,
/// q*stride - pad + s*dilation], where g is the group of k and x is zero outside its extent.
///
/// x: N x C x H x W           w: channels x C/groups x kernel x kernel     bias: 1 x channels x 1 x 1
/// y: N x channels x P x Q    P = (H + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded down; Q likewise
///
/// A correlation, not a flipped convolution, as in every net of the zoo.
/// ShapeError: C or channels is not divisible by groups, P or Q below 1, a number out of range.
struct Conv {
  int channels;
  Size kernel;
  Size stride = 1;
  Size pad = 0;
  Size dilation = 1;
  int groups = 1;
  bool bias = true;
  bool operator==(const Conv&) const = default;
};

/// y[n,k,p,q] = bias[k] + sum over c,h,w,r,s of x[n,c,h,w] * w[c, k - g*channels/groups, r, s] where p = h*stride - pad
/// + r*dilation and q = w*stride - pad + s*dilation, over the channels c of the group g of k. It is the data gradient
/// of a convolution from y to x with the same weights and options.
///
/// x: N x C x H x W           w: C x channels/groups x kernel x kernel     bias: 1 x channels x 1 x 1
/// y: N x channels x P x Q    P = (H - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1; Q likewise
///
/// ShapeError: C or channels is not divisible by groups, P or Q below 1, output_pad not below stride, a number out of
/// range. Zeiler and others: Deconvolutional Networks, 2010; Radford and others: DCGAN, 2015.
struct ConvTranspose {
  int channels;
  Size kernel;
  Size stride = 1;
  Size pad = 0;
  Size output_pad = 0;  ///< rows and columns added at the end
  Size dilation = 1;
  int groups = 1;
  bool bias = true;
  bool operator==(const ConvTranspose&) const = default;
};

/// Rounding of the number of windows along an axis. Torch rounds down, Caffe up (AlexNet's first pool: 54 -> 27,
/// not 26). With `up`, a last window that would start at or beyond H + pad is dropped, as Caffe and PyTorch do.
enum class Rounding : std::uint8_t { down, up };

/// y[n,c,p,q] = max over r,s of x[n, c, p*stride - pad + r, q*stride - pad + s]; padding is minus infinity.
/// The gradient goes to the first maximum of each window in order of rows, then columns. A NaN counts as the maximum.
///
/// P = (H + 2 pad - window) / stride + 1, rounded as `rounding` says.
/// ShapeError: 2 pad > window, P or Q below 1, a number out of range.
struct MaxPool {
  Size window;
  Size stride;
  Size pad = 0;
  Rounding rounding = Rounding::down;
  bool operator==(const MaxPool&) const = default;
};

/// y[n,c,p,q] = (sum over the window of x, zero outside) / divisor. Shapes as MaxPool.
/// The divisor is the number of window cells inside the image or, with `count_padding`, inside the image padded by
/// `pad` on each side, as in PyTorch. Cells beyond that, which `Rounding::up` can reach, never count.
struct AveragePool {
  Size window;
  Size stride;
  Size pad = 0;
  Rounding rounding = Rounding::down;
  bool count_padding = false;
  bool operator==(const AveragePool&) const = default;
};

/// y[n,c] = mean over h,w of x[n,c,h,w]. The window is the whole map: 7x7 at 224 pixels.
struct GlobalAveragePool {
  bool operator==(const GlobalAveragePool&) const = default;
};

/// y[n,k] = bias[k] + sum over c,h,w of w[k,c,h,w] * x[n,c,h,w]; flattens in the order c, h, w.
/// w: outputs x C x H x W     bias: 1 x outputs x 1 x 1     y: N x outputs x 1 x 1
struct FullyConnected {
  int outputs;
  bool bias = true;
  bool operator==(const FullyConnected&) const = default;
};

}  // namespace lamina
