// Convolution: forward with bias and ReLU, and the gradients of filter, bias and data. In inference an Add may come
// before the ReLU, and a batch norm is folded into filter and bias. A "+fused" algorithm computes forward in one call.
// In inference another function may take the place of the ReLU: our kernel applies it to y.
//
// An engine of cuDNN's graphs (graph/unit_engines.h) may take the place of the library's calls. In forward it computes
// bias, addend and ReLU as well. In the data gradient, a "+fused" engine applies the mask of the ReLU before the unit.
//
// On halves the library gets a prepared half form of the filter (half_conv.h). The bias stays in f32: our kernels add
// it and compute its gradient.

#include <memory>
#include <optional>

#include "conv_algorithms.h"
#include "half_conv.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/ops/tail.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {
namespace {

/// The data that all passes of a unit share.
struct Unit : ConvUnit {
  Session& session;
  const Api& api;
  std::shared_ptr<const HalfConv> halves;  ///< half forms of the unit; null for f32 and f64
  bool masks;                              ///< whether the gradients need the masked dy
  std::size_t filter_offset;               ///< offset of the filter in prepared memory; a folded bias is before it

  Unit(const Spec& spec, Session& in)
      : ConvUnit(conv_unit(spec)),
        session(in),
        api(in.api()),
        masks(relu && !inference && !spec.dy_is_masked),
        filter_offset(folded ? aligned(static_cast<std::size_t>(y.c) * size_of(spec.w[0].dtype)) : 0) {
    if (is_half(values)) halves = std::make_shared<const HalfConv>(op, spec, in);
  }

  bool prepares() const { return folded || halves; }
  std::size_t own_bytes(Pass pass) const {
    if (!halves || pass == Pass::backward_data) return 0;
    return halves->image_bytes() + (pass == Pass::backward_params ? halves->filter_bytes() : 0);
  }
  /// Filter and bias of a pass: the parameters or their prepared forms.
  const void* filter(const Args& args) const {
    return prepares() ? static_cast<const char*>(args.prepared) + filter_offset : args.w[0].data;
  }
  const void* bias(const Args& args) const { return folded ? args.prepared : args.w[1].data; }
  /// dy, or the masked dy in the unit's scratch.
  Tensor gradient(const Args& args) const {
    Tensor dy = masks ? args.y : args.dy;
    if (masks) dy.data = args.scratch;
    return dy;
  }
};

/// Computes the prepared filter (folded, in halves or both) and the folded bias from the parameters.
Lowered::Step prepare_step(const Unit& unit, const Spec& spec, const std::string& algorithm) {
  const auto run = [unit](const Args& args) {
    void* const filter = static_cast<char*>(args.prepared) + unit.filter_offset;
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
  const std::size_t bytes = dense_bytes(spec.w[0].shape, spec.w[0].dtype);
  return step({Pass::prepare}, algorithm, run, unit.folded && unit.halves ? bytes : 0);
}

/// One pass of a unit, by one algorithm.
struct OnePass : Unit {
  std::shared_ptr<const ConvProblem> problem;
  Taken taken;

  /// The address `further` bytes behind the library's workspace. The copy of x comes first there, then dw in halves.
  void* behind_library(const Args& args, std::size_t further = 0) const {
    return static_cast<char*>(args.workspace) + aligned(taken.workspace_bytes + further);
  }
  const void* image(const Args& args) const {
    return halves ? halves->image(args, behind_library(args)) : args.x[0].data;
  }
};

class Forward : OnePass {
 public:
  Forward(OnePass pass, const Spec& spec)
      : OnePass(std::move(pass)),
        relu_(describe_activation(api, activation_mode::relu, taken.fused ? nan::dont_propagate : nan::propagate)) {
    if (has_bias()) bias_ = std::make_unique<Bias>(spec, session);  // folded: the shape of the norm's parameter
    if (add) addend_ = std::make_unique<TensorDescriptor>(describe_value(api, spec.x.at(1)));
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void* own) -> const void* {
      if (id == graph::id_w) return filter(args);
      return id == graph::id_bias ? bias(args) : graph::usual_place(id, args, own);
    }};
  }

  void run(const Args& args) const {
    if (taken.fused) return run_fused(args);
    HandleObject* const handle = session.handle();
    LAMINA_CUDNN(api, ConvolutionForward, handle, one(values), problem->image(), image(args), problem->filter(),
                 filter(args), problem->convolution(), taken.number, args.workspace, taken.workspace_bytes,
                 zero(values), problem->result(), args.y.data);
    session.check_parts(Use::forward);
    const bool relu_with_bias = halves && bias_ && relu && !addend_;
    if (bias_) bias_->add(bias(args), args.y, relu_with_bias);
    if (addend_)
      LAMINA_CUDNN(api, AddTensor, handle, one(values), addend_->get(), args.x[1].data, one(values), problem->result(),
                   args.y.data);
    if (relu && !relu_with_bias)
      LAMINA_CUDNN(api, ActivationForward, handle, relu_.get(), one(values), problem->result(), args.y.data,
                   zero(values), problem->result(), args.y.data);
    if (activation) session.machine().apply_function(*activation, args.y);
  }

 private:
  /// Throws Unsupported for any refusal by the library. Only a call shows whether the library supports the fusion, and
  /// whether the convolution's own workspace is enough.
  void run_fused(const Args& args) const {
    const Status status = api.ConvolutionBiasActivationForward(
        session.handle(), one(values), problem->image(), args.x[0].data, problem->filter(), filter(args),
        problem->convolution(), taken.number, args.workspace, taken.workspace_bytes, beta(values, add),
        add ? addend_->get() : problem->result(), add ? args.x[1].data : args.y.data, bias_->object(), bias(args),
        relu_.get(), problem->result(), args.y.data);
    if (refused(api, status))
      throw Unsupported("cuDNN " + api.number() + " refuses " + taken.name +
                        ": cudnnConvolutionBiasActivationForward gave " + text(api, status) + "; the name without " +
                        std::string(fused_suffix) + " makes one call for each op");
    check(api, status, "cudnnConvolutionBiasActivationForward", __FILE__, __LINE__);
    session.check_parts(Use::forward);
  }

  ActivationDescriptor relu_;
  std::unique_ptr<const Bias> bias_;
  std::unique_ptr<const TensorDescriptor> addend_;
};

class BackwardParams : OnePass {
 public:
  BackwardParams(OnePass pass, const Spec& spec) : OnePass(std::move(pass)) {
    if (masks) mask_.emplace(spec, session);
    if (op.bias) bias_.emplace(spec, session, masks);
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void* own) -> const void* {
              if (id == graph::id_y) return gradient(args).data;
              if (id == graph::id_x) return args.x[0].data;
              return args.dw.at(0) ? filter_gradient(args, own) : nullptr;
            },
            [this](const Args& args, void*) { before(args); },
            [this](const Args& args, void* own) { after(args, own); }};
  }

  void run(const Args& args) const {
    before(args);
    void* const own = behind_library(args, halves ? halves->image_bytes() : 0);
    if (args.dw.at(0)) {
      LAMINA_CUDNN(api, ConvolutionBackwardFilter, session.handle(), one(values), problem->image(), image(args),
                   problem->result(), gradient(args).data, problem->convolution(), taken.number, args.workspace,
                   taken.workspace_bytes, beta(values, add_dw && !halves), problem->filter(),
                   filter_gradient(args, own));
      session.check_parts(Use::backward_params);
    }
    after(args, own);
  }

 private:
  void* filter_gradient(const Args& args, void* own) const { return halves ? own : args.dw[0].data; }
  void before(const Args& args) const {
    if (mask_) mask_->run(args);
  }
  void after(const Args& args, void* own) const {
    if (halves && args.dw.at(0)) halves->take_gradient(own, args.dw[0], add_dw);
    if (bias_) bias_->gradient(args, gradient(args));
  }

  std::optional<ReluMask> mask_;
  std::optional<Bias> bias_;
};

class BackwardData : OnePass {
 public:
  BackwardData(OnePass pass, const Spec& spec) : OnePass(std::move(pass)) {
    if (!spec.masks_dx || taken.fused) return;
    Spec before = spec;  // the unit that ends in the ReLU before this unit
    before.y = spec.x[0];
    mask_.emplace(before, session);
  }

  graph::Around around() const {
    return {[this](std::int64_t id, const Args& args, void*) -> const void* {
              if (id == graph::id_y) return gradient(args).data;
              if (id == graph::id_w) return filter(args);
              return !wanted(args, 0) ? nullptr : id == graph::id_x && taken.fused ? args.x[0].data : args.dx[0].data;
            },
            {},
            [this](const Args& args, void*) { mask(args); }};
  }

  void run(const Args& args) const {
    if (!wanted(args, 0)) return;
    LAMINA_CUDNN(api, ConvolutionBackwardData, session.handle(), one(values), problem->filter(), filter(args),
                 problem->result(), gradient(args).data, problem->convolution(), taken.number, args.workspace,
                 taken.workspace_bytes, beta(values, add_dx), problem->image(), args.dx[0].data);
    session.check_parts(Use::backward_data);
    mask(args);
  }

 private:
  /// Masks dx in place by x, the y of the ReLU before the unit.
  void mask(const Args& args) const {
    if (!mask_ || !wanted(args, 0)) return;
    Args before;
    before.y = args.x[0];
    before.dy = args.dx[0];
    before.scratch = args.dx[0].data;
    mask_->run(before);
  }

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
      const auto made = [&]<class Body>(std::type_identity<Body>) {
        const auto body = std::make_shared<const Body>(OnePass{unit, problem, taken}, spec);
        if (taken.plan != nullptr) {
          graph::Around around = body->around();
          around.place = [body, place = around.place](auto... all) { return place(all...); };
          around.own_bytes = bytes - std::min(bytes, aligned(taken.workspace_bytes));
          return graph::engine_step({pass}, taken, around);
        }
        Lowered::Step kept = step(
            {pass}, taken.name, [body](const Args& args) { body->run(args); }, bytes);
        kept.deterministic = taken.deterministic;
        kept.math = taken.math;
        return kept;
      };
      if (pass == Pass::forward) return made(std::type_identity<Forward>());
      return data ? made(std::type_identity<BackwardData>()) : made(std::type_identity<BackwardParams>());
    };
    lowered.steps.push_back(
        pick_conv("cudnn: " + to_string(Op(op)), spec, *problem, choice, adds, own_bytes, session, make));
  }
  lowered.workspace_exact = exact;
  if (unit.prepares()) {
    lowered.prepared_bytes =
        unit.filter_offset + (unit.halves ? unit.halves->filter_bytes() : dense_bytes(spec.w[0].shape, unit.values));
    lowered.steps.push_back(prepare_step(unit, spec, lowered.steps[0].algorithm));
    check_workspace("cudnn: " + to_string(Op(op)), choice, lowered.steps.back());
  }
  if (unit.masks) lowered.scratch_bytes = extent_bytes(spec.y, spec.y.pitch);
  return lowered;
}

}  // namespace lamina::cudnn
