// What each pass of an op reads at least, besides dy.

#include "op_reads.h"

#include <algorithm>
#include <limits>

#include "binary.h"
#include "functions.h"
#include "lib/core/text/one_of.h"

namespace lamina {
namespace {

using Inputs = OpReads::Inputs;

constexpr int every = std::numeric_limits<int>::max();

/// The tensors that the gradient of an op's inputs reads. An op without a line here does not compile.
struct DataGradientReads {
  OpReads operator()(const OneOf<Conv, ConvTranspose, FullyConnected> auto&) const { return {.params = 1}; }
  OpReads operator()(const Recurrent&) const { return {.params = 2}; }
  OpReads operator()(const BatchNorm&) const { return {.x = Inputs::first, .params = 2}; }
  OpReads operator()(const OneOf<GroupNorm, LayerNorm> auto&) const { return {.x = Inputs::first, .params = 1}; }
  OpReads operator()(const Lrn&) const { return {.x = Inputs::first}; }
  OpReads operator()(const OneOf<Relu, Softmax> auto&) const { return {.y = true}; }
  OpReads operator()(const Pointwise& op) const {
    const bool reads_x = row_of(op.function).reads_x;
    return {.x = reads_x ? Inputs::first : Inputs::none, .y = !reads_x};
  }
  OpReads operator()(const OneOf<SoftmaxCrossEntropy, SigmoidCrossEntropy> auto&) const { return {.x = Inputs::all}; }
  OpReads operator()(const Binary& op) const {
    const auto reads = [&](int of, int which) { return gradient_reads(op.function, of, which); };
    return {.x = reads(0, 0) || reads(1, 1) ? Inputs::all : reads(0, 1) ? Inputs::others : Inputs::none};
  }
  /// The mask of a Dropout follows from its step.
  OpReads operator()(const Dropout&) const { return {.state = true}; }
  OpReads operator()(const PRelu&) const { return {.x = Inputs::first, .params = 1}; }
  OpReads operator()(const ScaleShift& op) const { return {.params = op.learned ? 1 : 0, .state = !op.learned}; }
  /// These read dy alone; the positions of maxima are saved.
  OpReads operator()(const OneOf<MaxPool, AveragePool, GlobalAveragePool, Add, Pad, Resize, Reorder, Reduce, Concat,
                                 Slice, Embedding, Input> auto&) const {
    return {};
  }
};

}  // namespace

OpReads op_reads(const Op& op, Pass pass) {
  switch (pass) {
    case Pass::forward: return {.x = Inputs::all, .params = every, .state = true};
    case Pass::recompute: return {.x = Inputs::all, .params = every, .state = std::holds_alternative<ScaleShift>(op)};
    case Pass::backward_params: return {.x = Inputs::all};
    case Pass::backward_data: return std::visit(DataGradientReads{}, op);
    case Pass::prepare: break;
  }
  return {};
}

Shape forward_reads(const Op& op, const Shape& x, const Shape& y) { return std::holds_alternative<Slice>(op) ? y : x; }

Shape forward_reads_parameter(const Op& op, const std::vector<Shape>& x, Shape parameter) {
  if (std::holds_alternative<Embedding>(op))
    parameter.n = static_cast<int>(std::min<std::int64_t>(parameter.n, x[0].count()));
  return parameter;
}

Shape backward_reads_dy(const Op& op, const Shape& x, const Shape& y) {
  const auto* const pad = std::get_if<Pad>(&op);
  return pad != nullptr && pad->by == PadBy::value ? x : y;
}

}  // namespace lamina
