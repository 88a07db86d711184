#pragma once
// What can be computed: one small struct of numbers per op, in the headers of ops/, its shapes and its cost.
//
// Letters, here and everywhere: n, c, h, w are image, channel, row and column of an input; k, p, q are channel, row and
// column of an output; r, s are row and column of a window. H, W, C, N, K, P, Q, R, S are their extents.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lamina/api.h"
#include "lamina/ops/elementwise.h"
#include "lamina/ops/layers.h"
#include "lamina/ops/losses.h"
#include "lamina/ops/moves.h"
#include "lamina/ops/norms.h"
#include "lamina/ops/sequences.h"
#include "lamina/shape.h"

namespace lamina {

/// Every op. A new op does not compile until inference, cost and every backend handle it.
using Op =
    std::variant<Input, Conv, ConvTranspose, MaxPool, AveragePool, GlobalAveragePool, BatchNorm, GroupNorm, LayerNorm,
                 Lrn, Relu, FullyConnected, Dropout, Softmax, Pointwise, SoftmaxCrossEntropy, SigmoidCrossEntropy,
                 Embedding, Recurrent, Add, Binary, ScaleShift, PRelu, Pad, Resize, Reorder, Reduce, Concat, Slice>;

/// "conv", "max_pool", ...: the name of an op in messages, and a part of the names of rows and files.
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

/// The count of labels or ids that input `i` may hold: the whole numbers 0, 1, ..., count - 1, which have no gradient.
/// 0 if the input may hold any numbers.
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

/// The parts of the work of a unit. `backward_params` runs before `backward_data`. `prepare` makes the prepared form of
/// parameters. `recompute` makes y again from x and `saved`, and may write `saved` again.
enum class Pass : std::uint8_t { forward, backward_params, backward_data, prepare, recompute };
LAMINA_API std::string_view to_string(Pass);  ///< "forward"

enum class Mode : std::uint8_t { inference, training };

/// Lower bounds on the cost of one pass.
struct Cost {
  double flops = 0;  ///< a multiply-add counts as two; biases do not count, as in published figures
  double bytes = 0;  ///< every tensor the pass must read or write, touched once
};

/// Cost of one pass of the op alone, from shapes; throws what `infer` throws. Each of the three passes of a
/// (transposed) convolution or a fully connected op costs 2 flops per multiply-add of forward; for other ops see the
/// table at the head of lib/core/graph/cost.cpp. An embedding reads one row of its table for each id. `recompute` costs
/// what `forward` does, but reads no state except the numbers of a ScaleShift. `prepare` costs nothing.
LAMINA_API Cost cost(const Op&, const std::vector<Shape>& x, Pass, DType = DType::f32);

/// Multiply-adds of one forward pass of a convolution, a transposed convolution, a fully connected or recurrent op;
/// zero for every other op. Exact. Throws ShapeError as `infer` does, and for more than 2^63 - 1.
LAMINA_API std::int64_t multiply_adds(const Op&, const std::vector<Shape>& x);

}  // namespace lamina
