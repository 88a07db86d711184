#pragma once
// What can be computed: one small struct of numbers per op, its shapes and its cost.
//
// Letters, here and everywhere: n, c, h, w are image, channel, row and column of an input; k, p, q those
// of an output; r, s row and column of a window. H, W, C, N, K, P, Q, R, S are their extents.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
/// of the convolution of y to x that has these weights and numbers.
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

/// y = scale[c] * (x - mean[c]) / sqrt(variance[c] + epsilon) + shift[c].
///
/// Training: mean and biased variance of the batch over n,h,w; then running = (1 - momentum) running + momentum batch,
/// where the running variance uses the unbiased one (count / (count - 1)). Inference: mean and variance are the
/// running ones. Parameters: scale, shift (weight and bias by name). State: running_mean, running_var.
/// ShapeError: in training (when a plan is made) fewer than two values per channel; epsilon not positive; momentum
/// outside 0 to 1; ranks below 1.
/// Ioffe, Szegedy: Batch Normalization, 2015, algorithm 1.
struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;
  int ranks = 1;  ///< number of ranks whose batches share their statistics in training (Options::sync_batch_norm_ranks)
  bool operator==(const BatchNorm&) const = default;
};

/// y = scale[c] * (x - mean) / sqrt(variance + epsilon) + shift[c], with the mean and the biased variance of the values
/// of an image in a group of C / groups neighbouring channels. `groups` = C is InstanceNorm.
///
/// With `affine` scale and shift are parameters (weight and bias by name), without they are 1 and 0.
/// dx = (g - mean of g - xh * mean of g xh) / sqrt(variance + epsilon), where xh is the normalised value, g = scale[c]
/// dy and the means are over the group. dscale[c] = sum of dy xh, dshift[c] = sum of dy. ShapeError: C is not divisible
/// by groups; epsilon not positive. Wu, He: Group Normalization, 2018, section 3.1.
struct GroupNorm {
  int groups;
  double epsilon = 1e-5;
  bool affine = true;
  bool operator==(const GroupNorm&) const = default;
};

/// As GroupNorm, with the mean and the variance of the channels of one pixel, as ConvNeXt's LayerNorm2d has them; of
/// vectors it is the usual LayerNorm. ShapeError: epsilon not positive. Ba and others: Layer Normalization, 2016.
struct LayerNorm {
  double epsilon = 1e-5;
  bool affine = true;
  bool operator==(const LayerNorm&) const = default;
};

/// y[c] = x[c] / (k + alpha/size * sum of x[i]^2 over i in [c - size/2, c - size/2 + size - 1])^beta, across channels;
/// the window is clipped at the ends but still divided by `size`. An even size has one channel more below c than above.
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

/// Training: y = x * mask / (1 - rate), where mask is 1 with probability 1 - rate, else 0. Inference: y = x.
/// Counter-based: element i = ((n C + c) H + h) W + w takes word i mod 4 of Philox4x32-10 with the key
/// (seed xor hash of the node's name) and the counter (i / 4, step), and is dropped if word < rate * 2^32. State: step,
/// one u64 word, advanced by every training forward. The mask is the same on every backend and in every layout.
/// ShapeError: rate below 0, or not below 1.
struct Dropout {
  double rate = 0.5;
  std::uint64_t seed = 0;
  std::int64_t batch_offset = 0;  ///< index of this batch's first image in the global batch of all ranks
  bool operator==(const Dropout&) const = default;
};

/// y = exp(x) / sum of exp(x) along the axis, computed on x - max; with `log` its logarithm x - max - log(sum).
/// dx = y (dy - sum of y dy), with `log` dy - exp(y) times the sum of dy.
struct Softmax {
  Axis axis = Axis::channel;
  bool log = false;
  bool operator==(const Softmax&) const = default;
};

/// The functions of one element, with the numbers a and b of a Pointwise. The gradient dx = dy f'(x) is computed from
/// y, or from x for those marked (x): y does not say what x was, or not as exactly.
enum class Function : std::uint8_t {
  sigmoid,       ///< 1 / (1 + exp(-x))
  tanh,          ///< tanh(x)
  clip,          ///< min(max(x, a), b), either may be infinite; dx = dy where a < x < b, else 0. ReLU6 has 0 and 6
  hard_sigmoid,  ///< min(max(a x + b, 0), 1); dx = a dy where 0 < y < 1, else 0. PyTorch has 1/6 and 1/2, ONNX 0.2
  hard_swish,    ///< (x) x min(max(x / 6 + 1/2, 0), 1); dx = 0 for x <= -3, dy for x >= 3, else dy (x / 3 + 1/2)
  silu,          ///< (x) x / (1 + exp(-x)): Swish with beta 1
  leaky_relu,    ///< x for x > 0, else a x
  elu,           ///< b x for x > 0, else b a (exp(x) - 1). With SELU's a and b it is SELU
  celu,          ///< x for x > 0, else a (exp(x / a) - 1)
  gelu,          ///< (x) x P(x) with P(x) = (1 + erf(x / sqrt(2))) / 2
  gelu_tanh,     ///< (x) x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  softplus,      ///< log(1 + exp(x))
  mish,          ///< (x) x tanh(log(1 + exp(x)))
  exp,           ///< exp(x)
  log,           ///< (x) the natural logarithm
  sqrt,          ///< the square root; the gradient at 0 is infinite
  abs,           ///< (x) |x|; dx = 0 at 0
  pow,           ///< (x) x^a: NaN for x below 0, unless a is whole
};

/// y = f(x) for each element. A NaN stays a NaN. At minus infinity a function that is x times a factor that goes to 0
/// is 0. ShapeError: clip: a above b, a bound that is NaN or, if finite, beyond f32; hard_sigmoid, leaky_relu, elu,
/// celu, pow: a number that is not finite in f32; leaky_relu, elu: a or b below 0; celu: a not above 0; pow: a is 0.
/// Howard and others: Searching for MobileNetV3, 2019, section 5.2 (hard_swish). Elfwing and others, 2017 (silu).
/// Clevert and others, 2015 (elu). Klambauer and others, 2017 (SELU). Barron, 2017 (celu). Hendrycks, Gimpel: Gaussian
/// Error Linear Units, 2016. Misra: Mish, 2019.
struct Pointwise {
  Function function;
  double a = 0;
  double b = 0;
  bool operator==(const Pointwise&) const = default;
};
/// SELU's a and b: a chain of layers keeps mean 0 and variance 1.
inline constexpr double selu_alpha = 1.6732632423543772848170429916717, selu_scale = 1.0507009873554804934193349852946;

/// The loss of a softmax, from logits, and its accuracy. A row is one pixel of one image.
///
/// x: logits N x C x H x W, labels N x 1 x H x W: the class of each row as a whole number     y: 1 x 2 x 1 x 1
/// y[0] = mean over the rows of -log p, where p = softmax(logits)[label];
/// y[1] = share of the rows whose largest logit, the first of equal ones, is the label.
/// A row with the label -1 is ignored: neither y counts it, and its gradient is 0. If all are ignored, y is 0.
/// With `clip`, p is limited to [clip, 1 - clip] in the loss, as Keras does, and a row whose p is outside has gradient
/// 0. The gradient follows from dy[0] alone: dlogits = dy[0] (softmax(logits) - one-hot(label)) / rows. Labels have
/// none. A label that is neither -1 nor a class makes y[0] and the gradient of its row NaN. It counts as wrong in y[1].
/// ShapeError: labels do not fit the logits; clip negative, or not below 0.5.
struct SoftmaxCrossEntropy {
  double clip = 0;
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};

/// The loss of a sigmoid, from logits, and its accuracy. Every element is one decision.
///
/// x: logits, labels of the same shape: 0 or 1     y: 1 x 2 x 1 x 1
/// y[0] = mean of max(x, 0) - x label + log(1 + exp(-|x|)); y[1] = share of x that are above 0 exactly if the label
/// is 1. The label -1, other labels, and dy as in SoftmaxCrossEntropy: dlogits = dy[0] (sigmoid(x) - label) /
/// decisions. With `clip`, the probability is limited to [clip, 1 - clip] in the loss, as Keras does: x is limited to
/// +-log((1 - clip) / clip), and has gradient 0 outside.
/// ShapeError: the shapes differ; clip negative, or not below 0.5.
struct SigmoidCrossEntropy {
  double clip = 0;
  bool operator==(const SigmoidCrossEntropy&) const = default;
};

/// y[n,f,h,w] = weight[x[n,0,h,w], f]: each id is replaced by its row of a table.
///
/// x: N x 1 x H x W, whole numbers from 0 to below vocabulary     weight: vocabulary x features x 1 x 1
/// y: N x features x H x W; a sequence is {images, features, steps, 1}
/// Ids have no gradient. The gradient of the weight is dense: rows without an id get 0. Equal ids add in the order of
/// n, h, w. An id that is out of range makes its y NaN and adds to no gradient; no memory outside the table is touched.
/// ShapeError: x has several channels; vocabulary below 1 or above 2^24 (what f32 counts exactly), features below 1.
struct Embedding {
  int vocabulary;
  int features;
  bool operator==(const Embedding&) const = default;
};

/// What a recurrent layer computes at each step: long short-term memory or a gated recurrent unit.
enum class Cell : std::uint8_t { lstm, gru };

/// How the gates i, f and o of an LSTM, r and z of a GRU are limited to 0 to 1: 1 / (1 + exp(-a)), or min(max(0.2 a +
/// 0.5, 0), 1), whose gradient is 0 outside +-2.5 (Keras' LSTM of 2017).
enum class Gates : std::uint8_t { logistic, hard_sigmoid };

/// What a recurrent layer gives: h of every step, or of the step that it computes last.
enum class Steps : std::uint8_t { all, last };

/// One recurrent layer in one direction. Steps run along h (`reverse`: from the last to the first). Each takes h' and
/// c' of the step before, 0 at first. W is weight_ih, U is weight_hh, b is the bias, s is the gate function:
///
///     lstm   [i f g o] = W x[t] + U h' + b     i, f, o through s, g through tanh     c = f c' + i g     h = o tanh(c)
///     gru    r = s(W_r x[t] + U_r h' + b_r)     z = s(W_z x[t] + U_z h' + b_z)
///            n = tanh(W_n x[t] + b_n + r (U_n h' + b_m))     h = (1 - z) n + z h'
///
/// x: N x C x T x 1 or N x C x 1 x T     weight_ih: R x C x 1 x 1     weight_hh: R x hidden x 1 x 1
/// R = 4 hidden rows, of i, then f, g, o; in a GRU 3 hidden rows, of r, then z, n: as in PyTorch
/// bias: 1 x 4 hidden x 1 x 1, of i, f, g, o; in a GRU of r, z, n, m
/// y: N x hidden x T x 1, h of step t at t also in reverse; with Steps::last N x hidden x 1 x 1
///
/// With `vocabulary` not 0, x is N x 1 x T x 1 and holds ids below it: each is short for a vector of C = vocabulary
/// channels with a 1 at the id and 0 elsewhere. The parameters are the same; ids have no gradient, and one that is out
/// of range makes y NaN from its step on.
///
/// The bias is the sum of PyTorch's bias_ih_l0 and bias_hh_l0; in a GRU r and z are sums, n is that of bias_ih_l0, m
/// the n of bias_hh_l0. Layers are ops one after another, a bidirectional layer is two ops and a Concat.
///
/// ShapeError: neither H nor W is 1, hidden below 1, vocabulary as in Embedding with C = 1.
struct Recurrent {
  int hidden;
  Cell cell = Cell::lstm;
  Steps steps = Steps::all;
  Gates gates = Gates::logistic;
  bool reverse = false;
  int vocabulary = 0;
  int matrices() const { return cell == Cell::gru ? 3 : 4; }  ///< gates whose weights are in weight_ih
  bool operator==(const Recurrent&) const = default;
};

/// y = sum of the inputs (two or more, of equal shape).
struct Add {
  bool operator==(const Add&) const = default;
};

enum class BinaryFunction : std::uint8_t { add, subtract, multiply, divide, maximum, minimum };

/// y = function(x[0], x[1]), element by element. n is equal; c, h and w are each equal, or 1 in an input that then
/// repeats, such as a gate N x C x 1 x 1 (squeeze-and-excitation) or N x 1 x H x W; its gradient is a sum over what
/// repeats, in a fixed order. In a maximum or minimum, equal elements get half of dy each, as in PyTorch, and a NaN
/// stays a NaN. ShapeError: other shapes.
struct Binary {
  BinaryFunction function;
  bool operator==(const Binary&) const = default;
};

/// y[n,c,h,w] = scale[c] x[n,c,h,w] + shift[c]; dx = scale[c] dy. Without `by_channel` there is one scale and one shift
/// for all channels. Without `learned` they are state that no pass changes, such as the mean and deviation of images.
/// With `learned` they are parameters, such as a layer scale: dscale[c] = sum over n,h,w of dy x, dshift[c] = sum of
/// dy. Scale and shift are each 1 x C x 1 x 1, or 1 x 1 x 1 x 1, and start as 1 and 0.
struct ScaleShift {
  bool by_channel = true;
  bool learned = false;
  bool operator==(const ScaleShift&) const = default;
};

/// y[n,c,h,w] = x[n,c,h,w] for x > 0, else weight[c] x; dx = dy or weight[c] dy; dweight[c] = sum over n,h,w of dy x
/// where x is not above 0. Without `by_channel` there is one weight for all channels.
/// weight: 1 x C x 1 x 1, or 1 x 1 x 1 x 1; it starts as 1/4.
/// He and others: Delving Deep into Rectifiers, 2015.
struct PRelu {
  bool by_channel = true;
  bool operator==(const PRelu&) const = default;
};

/// The cells that a border is made of: a constant value, the nearest cell of the image, its mirror image, or the cell
/// at the opposite end.
enum class PadBy : std::uint8_t { value, edge, reflect, wrap };

/// y[n,c,p,q] = x[n, c - channels_before, p - before.h, q - before.w], and where that is outside x: `value`, or along
/// each axis the cell
///     edge      the nearest: 0 or H - 1
///     reflect   -h or 2 (H - 1) - h
///     wrap      h + H or h - H
/// y: N x channels_before + C + channels_after x before.h + H + after.h x before.w + W + after.w
/// The gradient of x is the part of dy inside and, unless by value, of the border what was made from each cell.
/// ShapeError: a negative side, an extent above 2^31 - 1, a value that is NaN or, if finite, beyond f32, a side above
/// H - 1 by reflect or above H by wrap, channels unless by value.
struct Pad {
  Size before;  ///< rows above, columns on the left
  Size after;   ///< rows below, columns on the right
  double value = 0;
  PadBy by = PadBy::value;
  int channels_before = 0, channels_after = 0;
  bool operator==(const Pad&) const = default;
};

/// What an element of y shows of x, along each axis. Element i of y lies at cell i step + offset of x, limited to 0 and
/// H - 1. In PyTorch's words these are F.interpolate's modes; "bilinear" is linear along both axes.
///     nearest          offset 0; the cell below, as its "nearest"
///     nearest_exact    offset step / 2; the cell below, as its "nearest-exact"
///     linear           offset step / 2 - 1/2; the cells below and above, weighted by how near they are
///     linear_aligned   offset 0, step (H - 1) / (to.h - 1): the corners of x and y coincide (align_corners)
enum class ResizeBy : std::uint8_t { nearest, nearest_exact, linear, linear_aligned };

/// y: N x C x to.h x to.w, from x as `by` says. dx[i] is the sum of dy times the weight that each has of x[i].
///
/// A step of 0 is H / to.h or W / to.w. PyTorch's is 1 / scale_factor where it is given a factor and not a size, which
/// differs if H scale_factor is no whole number. Nearest modes round a position up within 2^-20 of a cell.
/// ShapeError: an extent below 1; a step that is negative or not finite in f32, or not 0 where corners are aligned.
struct Resize {
  Size to;  ///< rows and columns of y
  ResizeBy by = ResizeBy::nearest;
  double step_h = 0, step_w = 0;  ///< rows and columns of x from an element of y to the next
  bool operator==(const Resize&) const = default;
};

/// Up to 8 numbers, one for each axis. ShapeError: more.
class Axes {
 public:
  Axes() = default;
  LAMINA_API Axes(std::initializer_list<int>);
  LAMINA_API void push_back(int);
  std::size_t size() const { return size_; }
  const int* begin() const { return numbers_.data(); }
  const int* end() const { return begin() + size_; }
  int operator[](std::size_t i) const { return numbers_[i]; }
  bool operator==(const Axes&) const = default;

 private:
  std::array<int, 8> numbers_{};
  std::size_t size_ = 0;
};

/// Copies each image into another order or grouping of its axes. It is seen as `extents`; axis order[i] becomes axis i;
/// the result is seen as channels x rows x columns. In PyTorch: x.reshape(n, *extents).permute(...).reshape(...).
/// dx is the inverse copy of dy.
/// y: N x channels x rows x columns     ShapeError: the products of extents are not C H W; order is no permutation.
struct Reorder {
  Axes extents, order;
  int channels;
  Size pixels;
  bool operator==(const Reorder&) const = default;
};

/// y[n, i groups + g, h, w] = x[n, g C/groups + i, h, w]: the first channels of all groups, then the second, ...
/// Zhang and others: ShuffleNet, 2017, section 3.1. ShapeError: C is not divisible by groups.
LAMINA_API Reorder channel_shuffle(const Shape& x, int groups);
/// y[n, c, h factor + i, w factor + j] = x[n, (c factor + i) factor + j, h, w]. Shi and others: Real-Time
/// Super-Resolution, 2016, section 3.2. ShapeError: C is not divisible by factor^2.
LAMINA_API Reorder pixel_shuffle(const Shape& x, int factor);
/// The inverse of pixel_shuffle. ShapeError: H or W is not divisible by factor.
LAMINA_API Reorder pixel_unshuffle(const Shape& x, int factor);

/// Concatenates the inputs along an axis; their other extents are equal.
struct Concat {
  Axis axis = Axis::channel;
  bool operator==(const Concat&) const = default;
};

/// Elements first, first + step, ... of an axis of x, `count` of them. dx = dy there, and 0 elsewhere.
/// ShapeError: first < 0; count or step < 1; an element beyond the axis.
struct Slice {
  Axis axis = Axis::channel;
  int first;
  int count;
  int step = 1;
  bool operator==(const Slice&) const = default;
};

enum class ReduceBy : std::uint8_t { mean, sum, max };

/// y = the mean, the sum or the maximum of x over the axes that are set. Each of them has extent 1 in y.
/// dx = dy, divided by the number of elements of a mean. That of a maximum goes to the first one in order of c, h, w,
/// as in torch.max(x, dim); where several are equal torch.amax divides it. A NaN counts as the maximum.
/// ShapeError: no axis.
struct Reduce {
  ReduceBy by;
  bool channels = false, rows = false, columns = false;
  bool operator==(const Reduce&) const = default;
};

/// Every op. A new op does not compile until inference, cost and every backend handle it.
using Op =
    std::variant<Input, Conv, ConvTranspose, MaxPool, AveragePool, GlobalAveragePool, BatchNorm, GroupNorm, LayerNorm,
                 Lrn, Relu, FullyConnected, Dropout, Softmax, Pointwise, SoftmaxCrossEntropy, SigmoidCrossEntropy,
                 Embedding, Recurrent, Add, Binary, ScaleShift, PRelu, Pad, Resize, Reorder, Reduce, Concat, Slice>;

/// "conv", "max_pool", ...: the stem of files, pages and row names.
LAMINA_API std::string_view op_name(const Op&);
/// "conv(64, 7x7, stride 2x2, pad 3x3)": every number that differs from the default.
LAMINA_API std::string to_string(const Op&);

/// The shapes that follow from an op and its inputs.
struct Inferred {
  Shape y;
  std::vector<Shape> params;  ///< weights first, then bias (norms: scale, shift)
  std::vector<Shape> state;   ///< BatchNorm: running mean, running variance; ScaleShift: scale, shift; Dropout: step
};

/// Throws ShapeError, naming the op and every input shape: wrong number of inputs, extents that do not match, a y that
/// would be empty or beyond 2^31 - 1 elements per image.
LAMINA_API Inferred infer(const Op&, const std::vector<Shape>& x);

/// How many values input `i` may hold if it holds whole numbers, labels or ids: 0, 1, ..., count - 1. 0 if it may hold
/// any numbers. An input of whole numbers has no gradient.
LAMINA_API std::int64_t whole_numbers(const Op&, const std::vector<Shape>& x, std::size_t i);

/// Last part of the names of an op's parameters and state: "weight", "bias"; "weight_ih_l0", "weight_hh_l0", "bias_l0";
/// "running_mean", "running_var"; "scale", "shift"; "step".
LAMINA_API std::vector<std::string_view> parameter_names(const Op&);
LAMINA_API std::vector<std::string_view> state_names(const Op&);

/// Whether the op is a BatchNorm, GroupNorm or LayerNorm. Their parameters are a scale and a shift for each channel.
LAMINA_API bool is_norm(const Op&);

/// Whether the op computes a loss and an accuracy from labels.
LAMINA_API bool is_loss(const Op&);

// Element types where values have type `dtype`. With half precision (f16, bf16) some tensors stay in f32, because they
// would lose too much: parameters, whose updates are smaller than a half resolves; running statistics; losses; labels
// and ids, which bf16 holds exactly only up to 256.

/// Element type of parameters, their gradients and the optimiser's state: f32 for f16 and bf16, else `dtype`.
LAMINA_API DType parameter_dtype(DType dtype);
/// Element type of an op's state: parameter_dtype for running statistics, u64 for a step.
LAMINA_API DType state_dtype(const Op&, DType dtype);
/// Element type of an op's input i, and of its gradient: parameter_dtype for labels and ids, else `dtype`.
LAMINA_API DType input_dtype(const Op&, const std::vector<Shape>& x, std::size_t i, DType dtype);
/// Element type of y and of its gradient: parameter_dtype for a loss, else `dtype`.
LAMINA_API DType output_dtype(const Op&, DType dtype);

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

/// Arithmetic on shapes, for the op alone; throws what `infer` throws. For a convolution, a transposed one or a fully
/// connected op each of the three passes costs 2 flops per multiply-add of forward; for other ops see the table at the
/// head of lib/core/graph/cost.cpp. An embedding reads one row of its table for each id. `recompute` costs what
/// `forward` does, but reads no state except the numbers of a ScaleShift. `prepare` costs nothing.
LAMINA_API Cost cost(const Op&, const std::vector<Shape>& x, Pass, DType = DType::f32);

/// Multiply-adds of one forward pass of a convolution, a transposed one, a fully connected or recurrent op; zero for
/// every other op. Exact. Throws ShapeError as `infer` does, and for more than 2^63 - 1.
LAMINA_API std::int64_t multiply_adds(const Op&, const std::vector<Shape>& x);

}  // namespace lamina
