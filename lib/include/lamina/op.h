#pragma once
// What can be computed: one small struct of numbers per op, its shapes and its cost.
//
// Letters, here and everywhere: n, c, h, w are image, channel, row and column of an input; k, p, q those
// of an output; r, s row and column of a window. H, W, C, N, K, P, Q, R, S are their extents.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// Two extents. Write `.kernel = 3` or `.kernel = {1, 7}`.
struct Size {
  int h, w;
  constexpr Size(int both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): implicit on purpose
  constexpr Size(int rows, int columns) : h(rows), w(columns) {}
  constexpr bool operator==(const Size&) const = default;
};

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

/// y = scale[c] * (x - mean[c]) / sqrt(variance[c] + epsilon) + shift[c].
///
/// Training: mean and biased variance of the batch over n,h,w; then running = (1 - momentum) running + momentum batch,
/// where the running variance uses the unbiased one (count / (count - 1)). Inference: mean and variance are the
/// running ones. Parameters: scale, shift (weight and bias by name). State: running_mean, running_var.
/// ShapeError: in training (when a plan is made) fewer than two values per channel; epsilon not positive; momentum
/// outside 0 to 1.
/// Ioffe, Szegedy: Batch Normalization, 2015, algorithm 1.
struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool operator==(const BatchNorm&) const = default;
};

/// y[c] = x[c] / (k + alpha/size * sum of x[i]^2 over i in [c - size/2, c - size/2 + size - 1])^beta, across channels;
/// the window is clipped at the ends but still divided by `size`. An even size extends one further down than up.
/// ShapeError: size below 1, k not positive, alpha or beta negative.
/// Krizhevsky et al. 2012, section 3.3, with alpha divided by size as Caffe, Torch, cuDNN and PyTorch do.
struct Lrn {
  int size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
  bool operator==(const Lrn&) const = default;
};

/// y = max(x, 0); dx = dy where x > 0, else 0. A NaN stays a NaN.
struct Relu {
  bool operator==(const Relu&) const = default;
};

/// y[n,k] = bias[k] + sum over c,h,w of w[k,c,h,w] * x[n,c,h,w]; flattens in the order c, h, w.
/// w: outputs x C x H x W     bias: 1 x outputs x 1 x 1     y: N x outputs x 1 x 1
struct FullyConnected {
  int outputs;
  bool bias = true;
  bool operator==(const FullyConnected&) const = default;
};

/// Training: y = x * mask / (1 - rate), mask 1 with probability 1 - rate; inference: y = x.
/// Counter-based: element i = ((n C + c) H + h) W + w takes word i mod 4 of Philox4x32-10 with the key
/// (seed xor hash of the node's name) and the counter (i / 4, step), and is dropped if word < rate * 2^32. State:
/// step, one u64 word, advanced by every training forward. The mask is the same on every backend and in every
/// layout. ShapeError: rate below 0, or not below 1.
struct Dropout {
  double rate = 0.5;
  std::uint64_t seed = 0;
  bool operator==(const Dropout&) const = default;
};

/// y[n,c,h,w] = exp(x[n,c,h,w]) / sum over c' of exp(x[n,c',h,w]), computed on x - max.
struct Softmax {
  bool operator==(const Softmax&) const = default;
};

/// y = sum of the inputs (two or more, of equal shape).
struct Add {
  bool operator==(const Add&) const = default;
};

/// Concatenates the inputs along the channel axis; n, h, w equal.
struct Concat {
  bool operator==(const Concat&) const = default;
};

/// Channels [first, first + channels) of x.
struct Slice {
  int first;
  int channels;
  bool operator==(const Slice&) const = default;
};

/// Every op. A new op does not compile until inference, cost and every backend handle it.
using Op = std::variant<Input, Conv, MaxPool, AveragePool, GlobalAveragePool, BatchNorm, Lrn, Relu, FullyConnected,
                        Dropout, Softmax, Add, Concat, Slice>;

/// "conv", "max_pool", ...: the stem of files, pages and row names.
LAMINA_API std::string_view op_name(const Op&);
/// "conv(64, 7x7, stride 2x2, pad 3x3)": every number that differs from the default.
LAMINA_API std::string to_string(const Op&);

/// The shapes that follow from an op and its inputs.
struct Inferred {
  Shape y;
  std::vector<Shape> params;  ///< weights first, then bias (BatchNorm: scale, shift)
  std::vector<Shape> state;   ///< BatchNorm: running mean, running variance; Dropout: step
};

/// Throws ShapeError, naming the op and every input shape: wrong number of inputs, extents that do not match, a y that
/// would be empty or beyond 2^31 - 1 elements per image.
LAMINA_API Inferred infer(const Op&, const std::vector<Shape>& x);

/// Last part of the names of an op's parameters and state: "weight", "bias"; "running_mean", "running_var"; "step".
LAMINA_API std::vector<std::string_view> parameter_names(const Op&);
LAMINA_API std::vector<std::string_view> state_names(const Op&);

/// The element type of an op's state if values have type `dtype`: `dtype` for running statistics, u64 for a step.
LAMINA_API DType state_dtype(const Op&, DType dtype);

/// The parts of the work of a unit. `backward_params` runs before `backward_data`.
/// `prepare` makes the prepared form of parameters; `recompute` makes y again from x and saved, without side effects.
enum class Pass : std::uint8_t { forward, backward_params, backward_data, prepare, recompute };
LAMINA_API std::string_view to_string(Pass);  ///< "forward"

enum class Mode : std::uint8_t { inference, training };

/// Lower bounds on the cost of one pass.
struct Cost {
  double flops = 0;  ///< a multiply-add counts as two; biases do not count, as in published figures
  double bytes = 0;  ///< every tensor the pass must read or write, touched once
};

/// Arithmetic on shapes, for the op alone; throws what `infer` throws. For a convolution or a fully connected
/// op each of the three passes costs 2 flops per multiply-add of forward; for other ops see the table at the head of
/// lib/graph/cost.cpp. `recompute` costs what `forward` does, without parameters and state; `prepare` costs nothing.
LAMINA_API Cost cost(const Op&, const std::vector<Shape>& x, Pass, DType = DType::f32);

/// Multiply-adds of one forward pass of a convolution or a fully connected op, zero for every other. Exact.
/// Throws ShapeError as `infer`, and beyond 2^63 - 1.
LAMINA_API std::int64_t multiply_adds(const Op&, const std::vector<Shape>& x);

}  // namespace lamina
