// Convolution: forward with bias and ReLU, in inference also with an Add before the ReLU and a batch norm folded into
// filter and bias, in one call if that is named; the gradients of filter, bias and data.

#include <optional>

#include "conv_algorithms.h"
#include "lib/backends/conv_tail.h"
#include "lib/backends/cudnn/library/status.h"
#include "lib/support/rounding.h"

namespace lamina::cudnn {
namespace {

/// Shared by all passes of one unit.
struct Unit {
  Session& session;
  const Api& api;
  DType dtype;
  bool relu, bias;   ///< bias: its own
  bool folded, add;  ///< inference: a batch norm is folded into filter and bias; x[1] is added
  bool adds, adds_dw;

  Unit(const Conv& op, const Spec& spec, Session& in)
      : session(in),
        api(in.api()),
        dtype(spec.y.dtype),
        relu(ends_in_relu(spec)),
        bias(op.bias),
        folded(conv_tail(spec).norm != nullptr),
        add(conv_tail(spec).add),
        adds(adds_dx(spec, 0)),
        adds_dw(spec.adds_dw) {}

  bool has_bias() const { return bias || folded; }
};

/// Prepared memory of a unit with a batch norm folded in: the bias and, from here on, the filter.
std::size_t folded_bias_bytes(const Spec& spec) {
  return aligned(static_cast<std::size_t>(spec.y.shape.c) * size_of(spec.y.dtype));
}

/// Computes the folded filter and bias from the parameters.
Lowered::Step fold_step(const Unit& unit, const Spec& spec, const std::string& algorithm) {
  const auto fold = [unit, epsilon = conv_tail(spec).norm->epsilon,
                     bias_bytes = folded_bias_bytes(spec)](const Args& args) {
    const std::size_t norm = unit.bias ? 2 : 1;  // the batch norm's first parameter
    const Shape& w = args.w[0].shape;
    unit.session.machine().fold(
        {unit.dtype, args.w[0].data, unit.bias ? args.w[1].data : nullptr, args.w[norm].data, args.w[norm + 1].data,
         args.state[0].data, args.state[1].data, epsilon, w.n, w.image()},
        static_cast<char*>(args.prepared) + bias_bytes, args.prepared);
  };
  return step({Pass::prepare}, algorithm, fold);
}

class Forward {
 public:
  Forward(const Unit& unit, const Spec& spec, ConvProblem problem, Taken taken)
      : unit_(unit),
        problem_(std::move(problem)),
        taken_(std::move(taken)),
        relu_(describe_relu(unit.api, taken_.fused ? nan::dont_propagate : nan::propagate)),
        filter_offset_(folded_bias_bytes(spec)) {
    if (unit.has_bias()) bias_.emplace(describe_dense(unit.api, spec.w.at(1)));  // if folded, its batch norm's
    if (unit.add) addend_.emplace(describe_value(unit.api, spec.x.at(1)));
  }

  void run(const Args& args) const {
    if (taken_.fused) return run_fused(args);
    const DType dtype = unit_.dtype;
    HandleObject* const handle = unit_.session.handle();
    LAMINA_CUDNN(unit_.api, ConvolutionForward, handle, one(dtype), problem_.image(), args.x[0].data, problem_.filter(),
                 filter(args), problem_.convolution(), taken_.number, args.workspace, taken_.workspace_bytes,
                 zero(dtype), problem_.result(), args.y.data);
    unit_.session.check_parts(Use::forward);
    if (bias_)
      LAMINA_CUDNN(unit_.api, AddTensor, handle, one(dtype), bias_->get(), bias(args), one(dtype), problem_.result(),
                   args.y.data);
    if (addend_)
      LAMINA_CUDNN(unit_.api, AddTensor, handle, one(dtype), addend_->get(), args.x[1].data, one(dtype),
                   problem_.result(), args.y.data);
    if (unit_.relu)
      LAMINA_CUDNN(unit_.api, ActivationForward, handle, relu_.get(), one(dtype), problem_.result(), args.y.data,
                   zero(dtype), problem_.result(), args.y.data);
  }

 private:
  /// The inputs of the pass: the parameters or, with a batch norm folded into them, the prepared form.
  const void* filter(const Args& args) const {
    return unit_.folded ? static_cast<const char*>(args.prepared) + filter_offset_ : args.w[0].data;
  }
  const void* bias(const Args& args) const { return unit_.folded ? args.prepared : args.w[1].data; }

  /// Any refusal by the library is Unsupported, whatever its status: only a call shows whether it supports the fusion,
  /// and whether the workspace of the convolution alone is enough for it.
  void run_fused(const Args& args) const {
    const DType dtype = unit_.dtype;
    const Status status = unit_.api.ConvolutionBiasActivationForward(
        unit_.session.handle(), one(dtype), problem_.image(), args.x[0].data, problem_.filter(), filter(args),
        problem_.convolution(), taken_.number, args.workspace, taken_.workspace_bytes,
        addend_ ? one(dtype) : zero(dtype), addend_ ? addend_->get() : problem_.result(),
        addend_ ? args.x[1].data : args.y.data, bias_->get(), bias(args), relu_.get(), problem_.result(), args.y.data);
    if (refused(unit_.api, status))
      throw Unsupported("cuDNN " + unit_.api.number() + " refuses " + taken_.name +
                        ": cudnnConvolutionBiasActivationForward gave " + text(unit_.api, status) +
                        "; the name without " + std::string(fused_suffix) + " makes one call for each op");
    check(unit_.api, status, "cudnnConvolutionBiasActivationForward", __FILE__, __LINE__);
    unit_.session.check_parts(Use::forward);
  }

  Unit unit_;
  ConvProblem problem_;
  Taken taken_;
  ActivationDescriptor relu_;
  std::optional<TensorDescriptor> bias_, addend_;
  std::size_t filter_offset_;  ///< of the folded filter in prepared memory
};

/// dy where y > 0, stored in the unit's scratch with y's pitch for both gradients.
class ReluMask {
 public:
  ReluMask(const Unit& unit, const Spec& spec)
      : unit_(unit),
        relu_(describe_relu(unit.api)),
        y_(describe_value(unit.api, spec.y)),
        dy_(describe_gradient(unit.api, spec.y)),
        copies_(spec.y.pitch != spec.y.gradient_pitch) {}

  void run(const Args& args) const {
    const DType dtype = unit_.dtype;
    HandleObject* const handle = unit_.session.handle();
    const void* dy = args.dy.data;
    if (copies_) {  // the library requires the same strides for y and dy
      LAMINA_CUDNN(unit_.api, TransformTensor, handle, one(dtype), dy_.get(), dy, zero(dtype), y_.get(), args.scratch);
      dy = args.scratch;
    }
    LAMINA_CUDNN(unit_.api, ActivationBackward, handle, relu_.get(), one(dtype), y_.get(), args.y.data, y_.get(), dy,
                 y_.get(), args.y.data, zero(dtype), y_.get(), args.scratch);
  }

 private:
  Unit unit_;
  ActivationDescriptor relu_;
  TensorDescriptor y_, dy_;
  bool copies_;
};

class BackwardParams {
 public:
  BackwardParams(const Unit& unit, const Spec& spec, ConvProblem problem, Taken taken)
      : unit_(unit), problem_(std::move(problem)), taken_(std::move(taken)) {
    if (unit.relu) mask_.emplace(unit, spec);
    if (unit.bias) bias_.emplace(describe_dense(unit.api, spec.w.at(1)));
  }

  void run(const Args& args) const {
    if (mask_) mask_->run(args);
    const void* const dy = mask_ ? args.scratch : args.dy.data;
    const DType dtype = unit_.dtype;
    HandleObject* const handle = unit_.session.handle();
    if (args.dw.at(0)) {
      LAMINA_CUDNN(unit_.api, ConvolutionBackwardFilter, handle, one(dtype), problem_.image(), args.x[0].data,
                   problem_.result(), dy, problem_.convolution(), taken_.number, args.workspace, taken_.workspace_bytes,
                   beta(dtype, unit_.adds_dw), problem_.filter(), args.dw[0].data);
      unit_.session.check_parts(Use::backward_params);
    }
    if (bias_ && args.dw.at(1))
      LAMINA_CUDNN(unit_.api, ConvolutionBackwardBias, handle, one(dtype), problem_.result(), dy,
                   beta(dtype, unit_.adds_dw), bias_->get(), args.dw[1].data);
  }

 private:
  Unit unit_;
  ConvProblem problem_;
  Taken taken_;
  std::optional<ReluMask> mask_;
  std::optional<TensorDescriptor> bias_;
};

class BackwardData {
 public:
  BackwardData(const Unit& unit, ConvProblem problem, Taken taken)
      : unit_(unit), problem_(std::move(problem)), taken_(std::move(taken)) {}

  void run(const Args& args) const {
    if (!wanted(args, 0)) return;
    const void* const dy = unit_.relu ? args.scratch : args.dy.data;
    LAMINA_CUDNN(unit_.api, ConvolutionBackwardData, unit_.session.handle(), one(unit_.dtype), problem_.filter(),
                 args.w[0].data, problem_.result(), dy, problem_.convolution(), taken_.number, args.workspace,
                 taken_.workspace_bytes, beta(unit_.dtype, unit_.adds), problem_.image(), args.dx[0].data);
    unit_.session.check_parts(Use::backward_data);
  }

 private:
  Unit unit_;
  ConvProblem problem_;
  Taken taken_;
};

/// A step that keeps `body`; `named`: the choice names its algorithm.
template <class Body>
Lowered::Step keep(Pass pass, const Taken& taken, bool named, std::shared_ptr<Body> body) {
  Lowered::Step kept = step(
      {pass}, taken.name, [body](const Args& args) { body->run(args); }, taken.workspace_bytes);
  kept.deterministic = taken.deterministic;
  kept.math = taken.math;
  kept.reason = named ? "named" : "rule: the first of cuDNN's heuristic within the limits";
  return kept;
}

}  // namespace

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, Session& session) {
  const Unit unit(op, spec, session);
  const Api& api = unit.api;
  bool exact = true;
  Lowered lowered = assemble(spec, [&](Pass pass) {
    const bool data = pass == Pass::backward_data;
    TensorDescriptor image = data ? describe_gradient(api, spec.x[0]) : describe_value(api, spec.x[0]);
    TensorDescriptor result =
        pass == Pass::forward || unit.relu ? describe_value(api, spec.y) : describe_gradient(api, spec.y);
    ConvProblem problem(op, spec, pass, std::move(image), std::move(result), session);
    const bool adds = pass == Pass::backward_params ? unit.adds_dw : data && unit.adds;
    const Taken taken = take("cudnn: " + to_string(Op(op)), spec, problem, choice, adds, session);
    const bool named = !choice.algorithm[static_cast<std::size_t>(pass)].empty();
    exact = exact && taken.exact;
    if (pass == Pass::forward)
      return keep(pass, taken, named, std::make_shared<Forward>(unit, spec, std::move(problem), taken));
    if (data) return keep(pass, taken, named, std::make_shared<BackwardData>(unit, std::move(problem), taken));
    return keep(pass, taken, named, std::make_shared<BackwardParams>(unit, spec, std::move(problem), taken));
  });
  lowered.workspace_exact = exact;
  if (unit.folded) {
    lowered.prepared_bytes =
        folded_bias_bytes(spec) + static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(unit.dtype);
    lowered.steps.push_back(fold_step(unit, spec, lowered.steps[0].algorithm));
  }
  if (unit.relu && spec.mode == Mode::training) lowered.scratch_bytes = extent_bytes(spec.y, spec.y.pitch);
  return lowered;
}

}  // namespace lamina::cudnn
