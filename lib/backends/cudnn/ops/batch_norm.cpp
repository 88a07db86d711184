// Batch normalisation over the images and pixels of each channel, in the library's mode SPATIAL. The persistent mode is
// not used, because it bounds the range of values. The library's running variance is unbiased, as ours is. In the
// backend cudnn-graph an Add and a ReLU may follow.

#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"
#include "tail.h"

namespace lamina::cudnn {
namespace {

/// The least epsilon that this version accepts.
double least_epsilon(const Api& api) { return at_least(api, 7, 5) ? 0.0 : 1e-5; }

struct Normalisation : Ends {
  BatchNorm op;
  bool adds, adds_dw, wants_dx, masks;
  TensorDescriptor channels;
  std::size_t channel_bytes, dx_bytes;
  Tail tail;
  float epsilon, momentum, zero_value = 0;  ///< numbers that engines read

  Normalisation(const BatchNorm& batch_norm, const Spec& spec, Session& in)
      : Ends(spec, in),
        op(batch_norm),
        adds(adds_dx(spec, 0)),
        adds_dw(spec.adds_dw),
        wants_dx(!spec.wants_dx.empty() && spec.wants_dx[0]),
        masks(graph::masks_norm(spec)),
        channels(describe_dense(api, spec.w[0])),
        channel_bytes(aligned(static_cast<std::size_t>(spec.y.shape.c) * size_of(spec.w[0].dtype))),
        dx_bytes(aligned(extent_bytes(spec.x[0], spec.x[0].gradient_pitch))),
        tail(spec, in),
        epsilon(static_cast<float>(op.epsilon)),
        momentum(static_cast<float>(op.momentum)) {
    if (op.epsilon < least_epsilon(api))
      refuse(op, "epsilon is " + std::to_string(op.epsilon) + ", and cuDNN " + api.number() + " takes 1e-5 or more");
  }

  /// Room for unwanted gradients, because the library writes all gradients or none.
  std::size_t workspace_bytes() const { return 2 * channel_bytes + (wants_dx ? 0 : dx_bytes); }

  void* saved_mean(const Args& args) const { return args.saved; }
  void* saved_deviation(const Args& args) const { return static_cast<char*>(args.saved) + channel_bytes; }

  void inference(const Args& args) const {
    LAMINA_CUDNN(api, BatchNormalizationForwardInference, session.handle(), batch_norm_spatial, one(dtype), zero(dtype),
                 x.get(), args.x[0].data, y.get(), args.y.data, channels.get(), args.w[0].data, args.w[1].data,
                 args.state[0].data, args.state[1].data, op.epsilon);
    tail.forward(args);
  }

  void training(const Args& args) const {
    LAMINA_CUDNN(api, BatchNormalizationForwardTraining, session.handle(), batch_norm_spatial, one(dtype), zero(dtype),
                 x.get(), args.x[0].data, y.get(), args.y.data, channels.get(), args.w[0].data, args.w[1].data,
                 op.momentum, args.state[0].data, args.state[1].data, op.epsilon, saved_mean(args),
                 saved_deviation(args));
    tail.forward(args);
  }

  // The addresses of the gradients. Unwanted gradients go to `spare`.
  void* dx_to(const Args& args, void* spare) const {
    return wanted(args, 0) ? args.dx[0].data : static_cast<char*>(spare) + 2 * channel_bytes;
  }
  void* dscale(const Args& args, void* spare) const { return args.dw[0] ? args.dw[0].data : spare; }
  void* dshift(const Args& args, void* spare) const {
    return args.dw[1] ? args.dw[1].data : static_cast<char*>(spare) + channel_bytes;
  }

  /// Copies the running statistics for a graph to read. The manual does not say that a graph may write them in place.
  void copy_statistics(const Args& args, void* own) const {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      session.machine().copy(static_cast<char*>(own) + i * channel_bytes, args.state[i].data,
                             static_cast<std::size_t>(args.state[i].shape.count()) * sizeof(float));
  }

  const void* place(std::int64_t id, const Args& args, void* own) const {
    switch (id) {
      case graph::id_mean: return saved_mean(args);
      case graph::id_inverse_deviation: return saved_deviation(args);
      case graph::id_old_mean: return own;
      case graph::id_old_variance: return static_cast<char*>(own) + channel_bytes;
      case graph::id_new_mean: return args.state[0].data;
      case graph::id_new_variance: return args.state[1].data;
      case graph::id_epsilon: return &epsilon;
      case graph::id_momentum: return &momentum;
      case graph::id_dy: return masks ? args.dy.data : tail.dy(args);
      case graph::id_zero: return &zero_value;
      case graph::id_masked: return tail.stores_mask_in_dx(args) ? args.dx[1].data : args.scratch;
      case graph::id_dx: return dx_to(args, own);
      case graph::id_dw: return dscale(args, own);
      case graph::id_dbias: return dshift(args, own);
      default: return graph::usual_place(id, args, own);
    }
  }

  void backward(const Args& args) const {
    tail.backward(args);
    void* const spare = args.workspace;
    LAMINA_CUDNN(api, BatchNormalizationBackward, session.handle(), batch_norm_spatial, one(dtype),
                 beta(dtype, adds && wanted(args, 0)), one(dtype), beta(dtype, adds_dw), x.get(), args.x[0].data,
                 dy.get(), tail.dy(args), dx.get(), dx_to(args, spare), channels.get(), args.w[0].data,
                 dscale(args, spare), dshift(args, spare), op.epsilon, saved_mean(args), saved_deviation(args));
  }
};

}  // namespace

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice& choice, Session& session) {
  check_whole_batch("cudnn", op);
  const auto norm = std::make_shared<const Normalisation>(op, spec, session);
  Lowered unit = empty_unit(spec);
  if (spec.mode == Mode::inference) {
    unit.steps.push_back(step({Pass::forward}, "direct", [norm](const Args& args) { norm->inference(args); }));
    return unit;
  }
  unit.saved_bytes = 2 * norm->channel_bytes;
  unit.backward_reads_x[0] = true;
  unit.steps.push_back(step({Pass::forward}, "direct", [norm](const Args& args) { norm->training(args); }));
  unit.steps.push_back(step(
      {Pass::backward_params, Pass::backward_data}, "direct", [norm](const Args& args) { norm->backward(args); },
      norm->workspace_bytes()));
  norm->tail.require(unit);
  graph::Around around{[norm](auto... all) { return norm->place(all...); },
                       [norm](const Args& args, void* own) { norm->copy_statistics(args, own); },
                       {},
                       2 * norm->channel_bytes};
  graph::offer_engines(unit, spec, Pass::forward, choice, session, around);
  // A graph with the mask writes the gradient of an addend itself, unless beta is 1.
  around.before = [norm](const Args& args, void*) {
    if (!norm->masks) norm->tail.backward(args);
  };
  around.after = [norm](const Args& args, void*) {
    if (norm->masks && !norm->tail.stores_mask_in_dx(args)) norm->tail.addend_gradient(args);
  };
  around.own_bytes = norm->workspace_bytes();
  if (graph::offer_engines(unit, spec, Pass::backward_params, choice, session, around) && norm->masks &&
      !graph::wants_addend_gradient(spec))
    unit.scratch_bytes = 0;
  return unit;
}

}  // namespace lamina::cudnn
