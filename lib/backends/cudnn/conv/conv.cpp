// Convolution: forward with bias and ReLU, and the gradients of filter, bias and data. In inference an Add may come
// before the ReLU, and a batch norm is folded into filter and bias. A "+fused" algorithm computes forward in one call.
// In the place of ReLU another function may follow in inference: our kernel applies it to y.
//
// An engine of cuDNN's graphs (graph/unit_engines.h) takes the place of the library's calls for the products, in
// forward with bias, addend and ReLU, in "+fused" engines of the data gradient with the mask of the ReLU before it.
//
// On halves the library gets a prepared half form of the filter (half_conv.h). The bias stays in f32: our kernels add
// it and compute its gradient.

#include <optional>

#include "conv_algorithms.h"
#include "half_conv.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/library/status.h"
#include "lib/backends/cudnn/ops/tail.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {
namespace {

/// Shared by all passes of one unit.
struct Unit : ConvUnit {
  Session& session;
  const Api& api;
  std::shared_ptr<const HalfConv> halves;  ///< null for other types
  bool masks;                              ///< whether the gradients need a mask of dy

  Unit(const Spec& spec, Session& in)
      : ConvUnit(conv_unit(spec)), session(in), api(in.api()), masks(relu && !inference && !spec.dy_is_masked) {
    if (is_half(values)) halves = std::make_shared<const HalfConv>(op, spec, in);
  }

  /// Address behind `bytes` of the library's workspace: the copy of x, and behind it the gradient in halves.
  static void* after(const Args& args, std::size_t bytes) {
    return static_cast<char*>(args.workspace) + aligned(bytes);
  }
  const void* image(const Args& args, const Taken& taken) const {
    return halves ? halves->image(args, after(args, taken.workspace_bytes)) : args.x[0].data;
  }
  std::size_t own_bytes(Pass pass) const {
    if (!halves || pass == Pass::backward_data) return 0;
    return halves->image_bytes() + (pass == Pass::backward_params ? halves->filter_bytes() : 0);
  }
};

/// Offset of the filter in prepared memory. A folded bias is before it.
std::size_t filter_offset(const Unit& unit, const Spec& spec) {
  return unit.folded ? aligned(static_cast<std::size_t>(spec.y.shape.c) * size_of(spec.w[0].dtype)) : 0;
}

/// Computes the prepared filter (folded, in halves or both) and the folded bias from the parameters.
Lowered::Step prepare_step(const Unit& unit, const Spec& spec, const std::string& algorithm) {
  const auto run = [unit, offset = filter_offset(unit, spec)](const Args& args) {
    void* const filter = static_cast<char*>(args.prepared) + offset;
    Tensor w = args.w[0];
    if (unit.folded) {
      const std::size_t norm = unit.op.bias ? 2 : 1;  // the batch norm's first parameter
      w.data = unit.halves ? args.workspace : filter;
      unit.session.machine().fold(
          {w.dtype, args.w[0].data, unit.op.bias ? args.w[1].data : nullptr, args.w[norm].data, args.w[norm + 1].data,
           args.state[0].data, args.state[1].data, unit.epsilon, w.shape.n, w.shape.image()},
          w.data, args.prepared);
    }
    if (unit.halves) unit.halves->write_filter(w, filter);
  };
  const std::size_t bytes = static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(spec.w[0].dtype);
  return step({Pass::prepare}, algorithm, run, unit.folded && unit.halves ? bytes : 0);
}

class Forward {
 public:
  Forward(const Unit& unit, const Spec& spec, std::shared_ptr<const ConvProblem> problem, Taken taken)
      : unit_(unit),
        problem_(std::move(problem)),
        taken_(std::move(taken)),
        relu_(describe_relu(unit.api, taken_.fused ? nan::dont_propagate : nan::propagate)),
        filter_offset_(filter_offset(unit, spec)) {
    if (unit.has_bias() && !unit.halves)
      bias_.emplace(describe_dense(unit.api, spec.w.at(1)));  // folded: the shape of the norm's parameter
    if (unit.add) addend_.emplace(describe_value(unit.api, spec.x.at(1)));
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void* own) -> const void* {
      if (id == graph::id_w) return filter(args);
      return id == graph::id_bias ? bias(args) : graph::usual_place(id, args, own);
    }};
  }

  void run(const Args& args) const {
    if (taken_.fused) return run_fused(args);
    const DType dtype = unit_.values;
    HandleObject* const handle = unit_.session.handle();
    LAMINA_CUDNN(unit_.api, ConvolutionForward, handle, one(dtype), problem_->image(), unit_.image(args, taken_),
                 problem_->filter(), filter(args), problem_->convolution(), taken_.number, args.workspace,
                 taken_.workspace_bytes, zero(dtype), problem_->result(), args.y.data);
    unit_.session.check_parts(Use::forward);
    const bool relu_with_bias = unit_.halves && unit_.has_bias() && unit_.relu && !addend_;
    if (unit_.halves && unit_.has_bias()) unit_.session.machine().add_bias(bias(args), args.y, relu_with_bias);
    if (bias_)
      LAMINA_CUDNN(unit_.api, AddTensor, handle, one(dtype), bias_->get(), bias(args), one(dtype), problem_->result(),
                   args.y.data);
    if (addend_)
      LAMINA_CUDNN(unit_.api, AddTensor, handle, one(dtype), addend_->get(), args.x[1].data, one(dtype),
                   problem_->result(), args.y.data);
    if (unit_.relu && !relu_with_bias)
      LAMINA_CUDNN(unit_.api, ActivationForward, handle, relu_.get(), one(dtype), problem_->result(), args.y.data,
                   zero(dtype), problem_->result(), args.y.data);
    if (unit_.activation) unit_.session.machine().apply_function(*unit_.activation, args.y);
  }

 private:
  /// Filter and bias of the pass: the parameters or their prepared forms.
  const void* filter(const Args& args) const {
    return unit_.folded || unit_.halves ? static_cast<const char*>(args.prepared) + filter_offset_ : args.w[0].data;
  }
  const void* bias(const Args& args) const { return unit_.folded ? args.prepared : args.w[1].data; }

  /// Throws Unsupported for any refusal by the library. Only a call shows whether it supports the fusion, and whether
  /// the workspace of the convolution alone is enough for it.
  void run_fused(const Args& args) const {
    const DType dtype = unit_.values;
    const Status status = unit_.api.ConvolutionBiasActivationForward(
        unit_.session.handle(), one(dtype), problem_->image(), args.x[0].data, problem_->filter(), filter(args),
        problem_->convolution(), taken_.number, args.workspace, taken_.workspace_bytes,
        addend_ ? one(dtype) : zero(dtype), addend_ ? addend_->get() : problem_->result(),
        addend_ ? args.x[1].data : args.y.data, bias_->get(), bias(args), relu_.get(), problem_->result(), args.y.data);
    if (refused(unit_.api, status))
      throw Unsupported("cuDNN " + unit_.api.number() + " refuses " + taken_.name +
                        ": cudnnConvolutionBiasActivationForward gave " + text(unit_.api, status) +
                        "; the name without " + std::string(fused_suffix) + " makes one call for each op");
    check(unit_.api, status, "cudnnConvolutionBiasActivationForward", __FILE__, __LINE__);
    unit_.session.check_parts(Use::forward);
  }

  Unit unit_;
  std::shared_ptr<const ConvProblem> problem_;
  Taken taken_;
  ActivationDescriptor relu_;
  std::optional<TensorDescriptor> bias_, addend_;
  std::size_t filter_offset_;  ///< offset of the filter in prepared memory
};

class BackwardParams {
 public:
  BackwardParams(const Unit& unit, const Spec& spec, std::shared_ptr<const ConvProblem> problem, Taken taken)
      : unit_(unit), problem_(std::move(problem)), taken_(std::move(taken)) {
    if (unit.masks) mask_.emplace(spec, unit.session);
    if (unit.op.bias && !unit.halves) bias_.emplace(describe_dense(unit.api, spec.w.at(1)));
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void* own) -> const void* {
              if (id == graph::id_y) return dy(args);
              if (id == graph::id_x || !args.dw.at(0)) return id == graph::id_x ? args.x[0].data : nullptr;
              return unit_.halves ? own : args.dw[0].data;
            },
            [this](const Args& args, void*) {
              if (mask_) mask_->run(args);
            },
            [this](const Args& args, void* own) {
              if (unit_.halves && args.dw.at(0)) unit_.halves->take_gradient(own, args.dw[0], unit_.add_dw);
              bias_gradient(args);
            }};
  }

  void run(const Args& args) const {
    if (mask_) mask_->run(args);
    if (args.dw.at(0)) {
      const DType dtype = unit_.values;
      HandleObject* const handle = unit_.session.handle();
      void* const dw = unit_.halves ? gradient_in_halves(args) : args.dw[0].data;
      LAMINA_CUDNN(unit_.api, ConvolutionBackwardFilter, handle, one(dtype), problem_->image(),
                   unit_.image(args, taken_), problem_->result(), dy(args), problem_->convolution(), taken_.number,
                   args.workspace, taken_.workspace_bytes, beta(dtype, unit_.add_dw && !unit_.halves),
                   problem_->filter(), dw);
      unit_.session.check_parts(Use::backward_params);
      if (unit_.halves) unit_.halves->take_gradient(dw, args.dw[0], unit_.add_dw);
    }
    bias_gradient(args);
  }

 private:
  const void* dy(const Args& args) const { return mask_ ? args.scratch : args.dy.data; }

  void bias_gradient(const Args& args) const {
    if (unit_.halves && unit_.op.bias && args.dw.at(1)) {
      Tensor masked = mask_ ? args.y : args.dy;
      if (mask_) masked.data = args.scratch;
      unit_.session.machine().bias_gradient(masked, args.dw[1].data, unit_.add_dw, args.workspace);
    }
    if (bias_ && args.dw.at(1))
      LAMINA_CUDNN(unit_.api, ConvolutionBackwardBias, unit_.session.handle(), one(unit_.values), problem_->result(),
                   dy(args), beta(unit_.values, unit_.add_dw), bias_->get(), args.dw[1].data);
  }

  void* gradient_in_halves(const Args& args) const {
    return Unit::after(args, taken_.workspace_bytes + unit_.halves->image_bytes());
  }

  Unit unit_;
  std::shared_ptr<const ConvProblem> problem_;
  Taken taken_;
  std::optional<ReluMask> mask_;
  std::optional<TensorDescriptor> bias_;
};

class BackwardData {
 public:
  BackwardData(const Unit& unit, const Spec& spec, std::shared_ptr<const ConvProblem> problem, Taken taken)
      : unit_(unit), problem_(std::move(problem)), taken_(std::move(taken)) {
    if (!spec.masks_dx || taken_.fused) return;
    Spec before = spec;  // as far as its mask
    before.y = spec.x[0];
    mask_.emplace(before, unit.session);
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void*) -> const void* {
              if (id == graph::id_y) return dy(args);
              if (id == graph::id_w) return filter(args);
              return !wanted(args, 0) ? nullptr : id == graph::id_x && taken_.fused ? args.x[0].data : args.dx[0].data;
            },
            {},
            [this](const Args& args, void*) { mask(args); }};
  }

  void run(const Args& args) const {
    if (!wanted(args, 0)) return;
    LAMINA_CUDNN(unit_.api, ConvolutionBackwardData, unit_.session.handle(), one(unit_.values), problem_->filter(),
                 filter(args), problem_->result(), dy(args), problem_->convolution(), taken_.number, args.workspace,
                 taken_.workspace_bytes, beta(unit_.values, unit_.add_dx), problem_->image(), args.dx[0].data);
    unit_.session.check_parts(Use::backward_data);
    mask(args);
  }

 private:
  const void* dy(const Args& args) const { return unit_.masks ? args.scratch : args.dy.data; }

  /// Masks dx in place by x, the y of the ReLU before the unit.
  void mask(const Args& args) const {
    if (!mask_ || !wanted(args, 0)) return;
    Args before;
    before.y = args.x[0];
    before.dy = args.dx[0];
    before.scratch = args.dx[0].data;
    mask_->run(before);
  }

  const void* filter(const Args& args) const { return unit_.halves ? args.prepared : args.w[0].data; }

  Unit unit_;
  std::shared_ptr<const ConvProblem> problem_;
  Taken taken_;
  std::optional<ReluMask> mask_;
};

}  // namespace

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, Session& session) {
  const Unit unit(spec, session);
  const Spec given = as_given(op, spec, session);
  const Api& api = unit.api;
  bool exact = true;
  Lowered lowered = product_flags(spec);
  for (const Pass pass : product_passes(spec)) {
    const bool data = pass == Pass::backward_data, params = pass == Pass::backward_params;
    TensorDescriptor image = data ? describe_gradient(api, given.x[0]) : describe_value(api, given.x[0]);
    TensorDescriptor result =
        pass == Pass::forward || unit.masks ? describe_value(api, spec.y) : describe_gradient(api, spec.y);
    const auto problem = std::make_shared<ConvProblem>(op, given, pass, std::move(image), std::move(result), session);
    const bool adds = params ? unit.add_dw && !unit.halves : data && unit.add_dx;
    const std::size_t own_bytes = unit.own_bytes(pass);
    const auto make = [&](const Taken& taken) {
      exact = exact && taken.exact;
      std::size_t bytes = with_own(taken.workspace_bytes, own_bytes);
      if (params && unit.halves && unit.op.bias)
        bytes = std::max(bytes, session.machine().bias_gradient_bytes(spec.y.shape, spec.y.layout));
      const auto made = [&](auto body) {
        if (taken.plan != nullptr) {
          graph::Around around = body->around();
          around.place = [body, place = around.place](auto... all) { return place(all...); };
          around.own_bytes = bytes - std::min(bytes, aligned(taken.workspace_bytes));
          return graph::engine_step({pass}, {taken.name, taken.plan, taken.deterministic, taken.math}, around);
        }
        Lowered::Step kept = step(
            {pass}, taken.name, [body](const Args& args) { body->run(args); }, bytes);
        kept.deterministic = taken.deterministic;
        kept.math = taken.math;
        return kept;
      };
      if (pass == Pass::forward) return made(std::make_shared<Forward>(unit, spec, problem, taken));
      if (data) return made(std::make_shared<BackwardData>(unit, spec, problem, taken));
      return made(std::make_shared<BackwardParams>(unit, spec, problem, taken));
    };
    lowered.steps.push_back(
        pick_conv("cudnn: " + to_string(Op(op)), spec, *problem, choice, adds, own_bytes, session, make));
  }
  lowered.workspace_exact = exact;
  if (unit.folded || unit.halves) {
    lowered.prepared_bytes = filter_offset(unit, spec) +
                             (unit.halves ? unit.halves->filter_bytes()
                                          : static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(unit.values));
    lowered.steps.push_back(prepare_step(unit, spec, lowered.steps[0].algorithm));
  }
  if (unit.masks) lowered.scratch_bytes = extent_bytes(spec.y, spec.y.pitch);
  return lowered;
}

}  // namespace lamina::cudnn
