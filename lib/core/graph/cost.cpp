// Lower bounds on the cost of a pass: arithmetic and bytes, from shapes alone.
//
// flops      forward and recompute                  backward_params        backward_data
// convs, fc  2 per product                          2 per product          2 per product
// pools      window cells per y                     -                      window cells per y (max: 1)
// norms      6 per x: sum, centred square, scaling  4 per x                4 per x
// lrn        size + 5 per x                         -                      size + 6 per x
// softmax    5 per x                                -                      4 per x
// relu, dropout   1 per x                           -                      1 per x
// pointwise  lib/core/units/functions.h, per x      -                      as forward
// softmax cross entropy   4 per logit               -                      4 per logit
// sigmoid cross entropy   8 per logit               -                      5 per logit
// embedding  0                                      1 per y                -
// lstm       2 per product, 15 per h of each step   2 per product, 21 per h of each step   2 per product
// gru        2 per product, 13 per h of each step   2 per product, 17 per h of each step   2 per product
// add        inputs - 1 per y                       -                      0
// binary     1 per y                                -                      lib/core/units/binary.h, per y
// scale_shift  2 per x                              learned: 3 per x       1 per x
// prelu      2 per x                                2 per x                2 per x
// reduce     1 per x                                -                      1 per y; sum 0
// pad        0                                      -                      0; 1 per border cell unless by value
// resize     0; linear 9 per y                      -                      1 per y; linear 8
// input, reorder, concat, slice   0                 -                      0
//
// Biases do not count, as in the published figures. An exponential, a power, a logarithm or a tanh counts as one. In
// a recurrent op's backward pass, products for the gradients of weights count in backward_params, products for the
// gradients of x and h in backward_data. If x holds ids, the product W x only selects rows, and counts nothing.
// Each number is derived beside the code that returns it. Bytes are those that an op alone reads
// (lib/core/units/op_reads.h) and writes; a plan that fuses or aliases needs fewer.

#include <cstdint>
#include <limits>
#include <string>

#include "lamina/error.h"
#include "lamina/op.h"
#include "lib/core/text/one_of.h"
#include "lib/core/units/binary.h"
#include "lib/core/units/functions.h"
#include "lib/core/units/op_reads.h"
#include "lib/core/units/resize_axis.h"

namespace lamina {
namespace {

double count(const Shape& shape) { return static_cast<double>(shape.count()); }

double count(const std::vector<Shape>& shapes) {
  double sum = 0;
  for (const Shape& shape : shapes) sum += count(shape);
  return sum;
}

/// The sums of products of an op, and how many products each sum has. There is one sum for each element of y or, in a
/// recurrent op, for each gate of each step. Their total may exceed 64 bits, but no single factor does.
struct Products {
  std::int64_t first, second, terms;
  double count() const { return static_cast<double>(first) * static_cast<double>(second) * static_cast<double>(terms); }
  /// Throws ShapeError if the number exceeds 64 bits.
  std::int64_t exact() const {
    std::int64_t product = 1;
    for (const std::int64_t factor : {first, second, terms}) {
      if (factor > 0 && product > std::numeric_limits<std::int64_t>::max() / factor)
        throw ShapeError("more than 2^63 - 1 multiply-adds in one pass");
      product *= factor;
    }
    return product;
  }
};

Products products(const Op& op, const std::vector<Shape>& x, const Inferred& shapes) {
  if (std::holds_alternative<Conv>(op) || std::holds_alternative<FullyConnected>(op))
    return {shapes.y.count(), 1, shapes.params.front().image()};
  if (std::holds_alternative<ConvTranspose>(op)) return {x[0].count(), 1, shapes.params.front().image()};
  const auto* its = std::get_if<Recurrent>(&op);
  if (its == nullptr) return {0, 0, 0};
  const std::int64_t inputs = its->vocabulary == 0 ? shapes.params.front().c : 0;
  return {x[0].n * x[0].plane(), shapes.params.front().n, inputs + its->hidden};
}

/// The arithmetic of all hidden values of all steps besides products.
double of_cells(const Recurrent& op, const Shape& x, int lstm, int gru) {
  return static_cast<double>(x.n * x.plane()) * op.hidden * (op.cell == Cell::gru ? gru : lstm);
}

double cells(Size window) { return static_cast<double>(window.h) * window.w; }

/// The shapes of an op.
struct OfShapes {
  const std::vector<Shape>& x;
  const Inferred& shapes;

  double of_products(const auto& op) const { return 2 * products(op, x, shapes).count(); }
};

/// The arithmetic of a pass, derived beside each number. An op without a line does not compile.
struct Forward : OfShapes {
  double operator()(const OneOf<Conv, ConvTranspose, FullyConnected> auto& op) const { return of_products(op); }
  double operator()(const OneOf<MaxPool, AveragePool> auto& op) const { return cells(op.window) * count(shapes.y); }
  double operator()(const OneOf<BatchNorm, GroupNorm, LayerNorm> auto&) const {
    return 6 * count(x[0]);  // sum 1; x - mean, square, add 3; scale, shift 2
  }
  double operator()(const Lrn& op) const {
    return (op.size + 5.0) * count(x[0]);  // square, window, k + alpha/size, power, x
  }
  double operator()(const OneOf<GlobalAveragePool, Relu, Dropout, Reduce> auto&) const { return count(x[0]); }
  double operator()(const Softmax&) const { return 5 * count(x[0]); }  // max, subtract, exponential, sum, divide
  double operator()(const Pointwise& op) const { return row_of(op.function).forward * count(x[0]); }
  double operator()(const SoftmaxCrossEntropy&) const { return 4 * count(x[0]); }  // max, subtract, exponential, sum
  double operator()(const SigmoidCrossEntropy&) const {
    return 8 * count(x[0]);  // max, product, subtract, exponential, add, logarithm, add, sum
  }
  /// Per hidden value: three gates 9, tanh 2, c 3, h 1. GRU: two gates 6, r and m 2, tanh 1, h 4.
  double operator()(const Recurrent& op) const { return of_products(op) + of_cells(op, x[0], 15, 13); }
  double operator()(const Add&) const { return static_cast<double>(x.size() - 1) * count(shapes.y); }
  double operator()(const Binary&) const { return count(shapes.y); }
  /// Product and sum; comparison and product.
  double operator()(const OneOf<ScaleShift, PRelu> auto&) const { return 2 * count(x[0]); }
  /// Linear: 3 sums of 2 products.
  double operator()(const Resize& op) const { return is_linear(op.by) ? 9 * count(shapes.y) : 0; }
  double operator()(const OneOf<Input, Embedding, Pad, Reorder, Concat, Slice> auto&) const { return 0; }
};

struct BackwardParams : OfShapes {
  double operator()(const OneOf<Conv, ConvTranspose, FullyConnected> auto& op) const { return of_products(op); }
  double operator()(const Embedding&) const { return count(shapes.y); }
  /// Per hidden value: do 1, dc 4, di, df, dg and the next dc 4; through three gates 9 and a tanh 3. GRU: dh 1, dz and
  /// dn 4, dr, dm and the next dh 3; through two gates 6 and a tanh 3.
  double operator()(const Recurrent& op) const { return of_products(op) + of_cells(op, x[0], 21, 17); }
  double operator()(const OneOf<BatchNorm, GroupNorm, LayerNorm> auto&) const {
    return shapes.params.empty() ? 0 : 4 * count(x[0]);  // shift: 1; x - mean and a product added to scale: 3
  }
  double operator()(const ScaleShift& op) const { return op.learned ? 3 * count(x[0]) : 0; }  // dy x added, dy added
  double operator()(const PRelu&) const { return 2 * count(x[0]); }                           // dy x added
  double operator()(const auto& /*without_parameters*/) const { return 0; }
};

struct BackwardData : OfShapes {
  double operator()(const OneOf<Conv, ConvTranspose, FullyConnected> auto& op) const { return of_products(op); }
  double operator()(const Recurrent& op) const { return of_products(op); }
  double operator()(const MaxPool&) const { return count(shapes.y); }
  double operator()(const AveragePool& op) const { return cells(op.window) * count(shapes.y); }
  /// dx = a dy + b x + c per channel.
  double operator()(const OneOf<BatchNorm, GroupNorm, LayerNorm> auto&) const { return 4 * count(x[0]); }
  /// Sum of y dy 2, y (dy - sum) 2.
  double operator()(const Softmax&) const { return 4 * count(x[0]); }
  /// Subtract, exponential, divide, scale.
  double operator()(const SoftmaxCrossEntropy&) const { return 4 * count(x[0]); }
  /// dy y / scale 2, window, times x 1, dy power - sum 3; the scale follows from x.
  double operator()(const Lrn& op) const { return (op.size + 6.0) * count(x[0]); }
  double operator()(const OneOf<GlobalAveragePool, Relu, Dropout, ScaleShift> auto&) const { return count(x[0]); }
  double operator()(const Pointwise& op) const { return row_of(op.function).backward * count(x[0]); }
  /// For each input its gradient, and the sum if it repeats.
  double operator()(const Binary& op) const {
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i) sum += row_of(op.function).backward[i] + (x[i] == shapes.y ? 0 : 1);
    return sum * count(shapes.y);
  }
  /// Exponential, add, divide, subtract, scale.
  double operator()(const SigmoidCrossEntropy&) const { return 5 * count(x[0]); }
  double operator()(const PRelu&) const { return 2 * count(x[0]); }
  double operator()(const Pad& op) const {  // the gradients of border cells are added
    return op.by == PadBy::value ? 0 : count(shapes.y) - count(x[0]);
  }
  /// Each dy is added to one cell, or with weights to four.
  double operator()(const Resize& op) const { return (is_linear(op.by) ? 8 : 1) * count(shapes.y); }
  /// A mean divides dy, a maximum adds it to one element.
  double operator()(const Reduce& op) const { return op.by == ReduceBy::sum ? 0 : count(shapes.y); }
  double operator()(const OneOf<Input, Embedding, Add, Reorder, Concat, Slice> auto&) const { return 0; }
};

/// Whether the op has an input with a gradient.
bool has_data_gradient(const Op& op, const std::vector<Shape>& x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (whole_numbers(op, x, i) == 0) return true;
  return false;
}

double flops_of(const Op& op, const std::vector<Shape>& x, const Inferred& shapes, Pass pass) {
  switch (pass) {
    case Pass::forward:
    case Pass::recompute: return std::visit(Forward{{x, shapes}}, op);
    case Pass::backward_params: return std::visit(BackwardParams{{x, shapes}}, op);
    case Pass::backward_data: return has_data_gradient(op, x) ? std::visit(BackwardData{{x, shapes}}, op) : 0;
    case Pass::prepare: return 0;
  }
  throw UsageError("no such pass: " + std::to_string(static_cast<int>(pass)));
}

/// The bytes of an op's tensors where values have type `dtype`.
struct Bytes {
  const Op& op;
  const std::vector<Shape>& x;
  const Inferred& shapes;
  DType dtype;

  static double of(double elements, DType type) { return elements * static_cast<double>(size_of(type)); }
  double of_x(std::size_t i, const Shape& extent) const { return of(count(extent), input_dtype(op, x, i, dtype)); }
  double of_y(const Shape& extent) const { return of(count(extent), output_dtype(op, dtype)); }
  double of_parameter(const Shape& extent) const { return of(count(extent), parameter_dtype(dtype)); }

  /// The bytes that a pass writes, and those of dy that it reads.
  double written_and_dy(Pass pass) const {
    if (pass != Pass::backward_params && pass != Pass::backward_data) return of_y(shapes.y);
    double bytes = of_y(pass == Pass::backward_data ? backward_reads_dy(op, x[0], shapes.y) : shapes.y);
    if (pass == Pass::backward_params)
      for (const Shape& parameter : shapes.params) bytes += of_parameter(parameter);
    for (std::size_t i = 0; pass == Pass::backward_data && i < x.size(); ++i)
      if (whole_numbers(op, x, i) == 0) bytes += of_x(i, x[i]);
    return bytes;
  }

  double read(const OpReads& reads) const {
    double bytes = reads.y ? of_y(shapes.y) : 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (reads.x != OpReads::Inputs::none && (i == 0 || reads.x != OpReads::Inputs::first))
        bytes += of_x(i, forward_reads(op, x[i], shapes.y));
    for (std::size_t k = 0; k < shapes.params.size() && static_cast<int>(k) < reads.params; ++k)
      bytes += of_parameter(forward_reads_parameter(op, x, shapes.params[k]));
    return bytes;
  }
};

double bytes_of(const Op& op, const std::vector<Shape>& x, const Inferred& shapes, Pass pass, DType dtype) {
  if (x.empty() || pass == Pass::prepare) return 0;
  if (pass == Pass::backward_params && shapes.params.empty()) return 0;
  if (pass == Pass::backward_data && !has_data_gradient(op, x)) return 0;
  const OpReads reads = op_reads(op, pass);
  const Bytes bytes{op, x, shapes, dtype};
  const double state = reads.state ? Bytes::of(count(shapes.state), state_dtype(op, dtype)) : 0;
  return bytes.read(reads) + bytes.written_and_dy(pass) + state;
}

}  // namespace

Cost cost(const Op& op, const std::vector<Shape>& x, Pass pass, DType dtype) {
  const Inferred shapes = infer(op, x);
  return {flops_of(op, x, shapes, pass), bytes_of(op, x, shapes, pass, dtype)};
}

std::int64_t multiply_adds(const Op& op, const std::vector<Shape>& x) { return products(op, x, infer(op, x)).exact(); }

}  // namespace lamina
