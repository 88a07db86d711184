#pragma once
// Functions of one element or of two, softmax, dropout, sums and products with numbers, reductions.

#include <cstdint>

#include "lamina/ops/layers.h"

namespace lamina {

/// y = max(x, 0); dx = dy where x > 0, else 0. A NaN stays a NaN.
struct Relu {
  bool operator==(const Relu&) const = default;
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
/// dx = y (dy - sum of y dy), with `log` dy - exp(y) times the sum of dy. ShapeError: more than 2^31 - 1 sums.
struct Softmax {
  Axis axis = Axis::channel;
  bool log = false;
  bool operator==(const Softmax&) const = default;
};

/// The functions of one element, with the numbers a and b of a Pointwise. The gradient dx = dy f'(x) is computed from
/// y, but from x for the functions marked (x): y does not determine their x, or not exactly enough.
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

/// y = f(x) for each element. A NaN stays a NaN. At minus infinity, hard_swish, silu, gelu, gelu_tanh and mish are 0.
/// ShapeError:
/// - clip: a above b, or a bound that is NaN or, if finite, beyond f32;
/// - hard_sigmoid, leaky_relu, elu, celu, pow: a number that is not finite in f32;
/// - leaky_relu, elu: a or b below 0;
/// - celu: a not above 0;
/// - pow: a is 0.
///
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

/// y = sum of the inputs; each dx = dy. ShapeError: fewer than two inputs; their shapes differ.
struct Add {
  bool operator==(const Add&) const = default;
};

/// The functions of two elements, a of x[0] and b of x[1], with their gradients da and db. Equal elements get half of
/// dy each in a maximum or a minimum, as in PyTorch.
enum class BinaryFunction : std::uint8_t {
  add,       ///< a + b; da = db = dy
  subtract,  ///< a - b; da = dy, db = -dy
  multiply,  ///< a b; da = dy b, db = dy a
  divide,    ///< a / b; da = dy / b, db = -dy a / b^2
  maximum,   ///< max(a, b); the larger element gets dy, the other 0. A NaN stays a NaN, and both get dy
  minimum,   ///< min(a, b); the smaller element gets dy, the other 0. A NaN: as in maximum
};

/// y = function(x[0], x[1]), element by element. The inputs have equal n. Their c, h and w are equal, or 1 in an input
/// that then repeats: for instance a gate N x C x 1 x 1 (squeeze-and-excitation) or N x 1 x H x W. The gradient of such
/// an input is a sum over the repetitions, in a fixed order. ShapeError: other shapes.
struct Binary {
  BinaryFunction function;
  bool operator==(const Binary&) const = default;
};

/// y[n,c,h,w] = scale[c] x[n,c,h,w] + shift[c]; dx = scale[c] dy. Without `by_channel` there is one scale and one shift
/// for all channels. Without `learned` they are state that no pass changes, such as the mean and deviation of images.
/// With `learned` they are parameters, such as a layer scale: dscale[c] = sum over n,h,w of dy x, dshift[c] = sum of
/// dy. Scale and shift are each 1 x C x 1 x 1, or 1 x 1 x 1 x 1, and start as 1 and 0. In a Trainer, a scale whose
/// shift is fixed starts as 1e-6.
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

enum class ReduceBy : std::uint8_t { mean, sum, max };

/// y = the mean, the sum or the maximum of x over the axes that are set. Each of them has extent 1 in y.
/// For a sum dx = dy; for a mean dx = dy / number of its elements. The gradient of a maximum goes to the first maximum
/// in order of c, h, w, as in PyTorch's max(dim); PyTorch's amax divides it among equal maxima. A NaN counts as the
/// maximum. ShapeError: no axis.
struct Reduce {
  ReduceBy by;
  bool channels = false, rows = false, columns = false;
  bool operator==(const Reduce&) const = default;
};

}  // namespace lamina
