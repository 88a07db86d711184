// Lower bounds on the cost of a pass: arithmetic and bytes, from shapes alone.
//
// flops      forward and recompute                  backward_params        backward_data
// conv, fc   2 per product                          2 per product          2 per product
// pools      window cells per y                     -                      window cells per y (max: 1)
// batch norm 6 per x: sum, centred square, scaling  4 per x                4 per x
// lrn        size + 5 per x                         -                      size + 6 per x
// softmax    5 per x                                -                      4 per x
// relu, dropout   1 per x                           -                      1 per x
// add        inputs - 1 per y                       -                      0
// input, concat, slice   0                          -                      0
//
// Biases do not count, as in the published figures; an exponential or a power counts as one. Each line is derived
// beside its number. Bytes are those of an op alone; a plan that fuses or aliases needs fewer.

#include <cstdint>
#include <limits>
#include <string>

#include "lamina/error.h"
#include "lamina/op.h"

namespace lamina {
namespace {

/// A product of positive factors, or a ShapeError if it exceeds 64 bits.
class ExactProduct {
 public:
  ExactProduct& times(std::int64_t factor) {
    if (value_ > std::numeric_limits<std::int64_t>::max() / factor) {
      throw ShapeError("more than 2^63 - 1 multiply-adds in one pass");
    }
    value_ *= factor;
    return *this;
  }
  std::int64_t value() const { return value_; }

 private:
  std::int64_t value_ = 1;
};

double count(const Shape& shape) { return static_cast<double>(shape.count()); }

double count(const std::vector<Shape>& shapes) {
  double sum = 0;
  for (const Shape& shape : shapes) sum += count(shape);
  return sum;
}

bool has_products(const Op& op) {
  return std::holds_alternative<Conv>(op) || std::holds_alternative<FullyConnected>(op);
}

/// Products of a convolution or a fully connected op: each element of y is a sum over one filter.
double products(const Inferred& shapes) { return count(shapes.y) * static_cast<double>(shapes.params.front().image()); }

/// Elements that a pass reads and writes, by kind, and its arithmetic.
struct Work {
  double flops = 0;
  double values = 0;  ///< elements of x, y, dx, dy, parameters and their gradients
  double state = 0;
};

struct Forward {
  const std::vector<Shape>& x;
  const Inferred& shapes;

  double flops(const Conv&) const { return 2 * products(shapes); }
  double flops(const FullyConnected&) const { return 2 * products(shapes); }
  double flops(const MaxPool& op) const { return cells(op.window) * count(shapes.y); }
  double flops(const AveragePool& op) const { return cells(op.window) * count(shapes.y); }
  double flops(const GlobalAveragePool&) const { return count(x[0]); }
  double flops(const BatchNorm&) const { return 6 * count(x[0]); }  // sum 1; x - mean, square, add 3; scale, shift 2
  double flops(const Lrn& op) const {
    return (op.size + 5.0) * count(x[0]);
  }  // square, window, k + alpha/size, power, x
  double flops(const Relu&) const { return count(x[0]); }
  double flops(const Dropout&) const { return count(x[0]); }
  double flops(const Softmax&) const { return 5 * count(x[0]); }  // max, subtract, exponential, sum, divide
  double flops(const Add&) const { return static_cast<double>(x.size() - 1) * count(shapes.y); }
  double flops(const Concat&) const { return 0; }
  double flops(const Slice&) const { return 0; }

  static double cells(Size window) { return static_cast<double>(window.h) * window.w; }

  Work operator()(const Input&) const { return {}; }
  template <class AnyOp>
  Work operator()(const AnyOp& op) const {
    return {flops(op), read(op) + count(shapes.y) + count(shapes.params), count(shapes.state)};
  }

 private:
  double read(const Slice&) const { return count(shapes.y); }
  template <class AnyOp>
  double read(const AnyOp&) const {
    return count(x);
  }
};

/// Reads x and dy, writes the gradients of the parameters.
struct BackwardParams {
  const std::vector<Shape>& x;
  const Inferred& shapes;

  Work operator()(const Conv&) const { return product(); }
  Work operator()(const FullyConnected&) const { return product(); }
  Work operator()(const BatchNorm&) const {
    return {4 * count(x[0]), tensors(), 0};  // shift: 1; x - mean and a product added to scale: 3
  }
  template <class WithoutParameters>
  Work operator()(const WithoutParameters&) const {
    return {};
  }

 private:
  double tensors() const { return count(x[0]) + count(shapes.y) + count(shapes.params); }
  Work product() const { return {2 * products(shapes), tensors(), 0}; }
};

/// Writes dx; each overload says what it reads. y and x of equal shape have the same count here.
struct BackwardData {
  const std::vector<Shape>& x;
  const Inferred& shapes;

  Work operator()(const Input&) const { return {}; }
  Work operator()(const Conv&) const { return product(); }
  Work operator()(const FullyConnected&) const { return product(); }
  Work operator()(const MaxPool&) const { return {count(shapes.y), dx_and_dy(), 0}; }  // positions of the maxima: saved
  Work operator()(const AveragePool& op) const { return {Forward::cells(op.window) * count(shapes.y), dx_and_dy(), 0}; }
  Work operator()(const GlobalAveragePool&) const { return {count(x[0]), dx_and_dy(), 0}; }
  Work operator()(const BatchNorm&) const {
    return {4 * count(x[0]), count(x[0]) + dx_and_dy() + count(shapes.params), 0};  // dx = a dy + b x + c per channel
  }
  /// dy y / scale 2, window, times x 1, dy power - sum 3; reads x, the scale follows.
  Work operator()(const Lrn& op) const { return {(op.size + 6.0) * count(x[0]), count(x[0]) + dx_and_dy(), 0}; }
  Work operator()(const Relu&) const { return {count(x[0]), count(shapes.y) + dx_and_dy(), 0}; }     // reads y
  Work operator()(const Dropout&) const { return {count(x[0]), dx_and_dy(), count(shapes.state)}; }  // mask from step
  Work operator()(const Softmax&) const {  // sum of y dy 2, y (dy - sum) 2; reads y
    return {4 * count(x[0]), count(shapes.y) + dx_and_dy(), 0};
  }
  Work operator()(const Add&) const { return {0, dx_and_dy(), 0}; }
  Work operator()(const Concat&) const { return {0, dx_and_dy(), 0}; }
  Work operator()(const Slice&) const { return {0, dx_and_dy(), 0}; }

 private:
  double dx_and_dy() const { return count(x) + count(shapes.y); }
  Work product() const { return {2 * products(shapes), dx_and_dy() + count(shapes.params.front()), 0}; }
};

Work work(const Op& op, const std::vector<Shape>& x, const Inferred& shapes, Pass pass) {
  switch (pass) {
    case Pass::forward: return std::visit(Forward{x, shapes}, op);
    case Pass::backward_params: return std::visit(BackwardParams{x, shapes}, op);
    case Pass::backward_data: return std::visit(BackwardData{x, shapes}, op);
    case Pass::prepare: return {};
    case Pass::recompute: {
      Work forward = std::visit(Forward{x, shapes}, op);
      forward.values -= count(shapes.params);
      forward.state = 0;
      return forward;
    }
  }
  throw UsageError("no such pass: " + std::to_string(static_cast<int>(pass)));
}

}  // namespace

Cost cost(const Op& op, const std::vector<Shape>& x, Pass pass, DType dtype) {
  const Work done = work(op, x, infer(op, x), pass);
  return {done.flops, done.values * static_cast<double>(size_of(dtype)) +
                          done.state * static_cast<double>(size_of(state_dtype(op, dtype)))};
}

std::int64_t multiply_adds(const Op& op, const std::vector<Shape>& x) {
  const Inferred shapes = infer(op, x);
  if (!has_products(op)) return 0;
  return ExactProduct().times(shapes.y.count()).times(shapes.params.front().image()).value();
}

}  // namespace lamina
