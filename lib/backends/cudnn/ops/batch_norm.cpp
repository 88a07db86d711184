// Batch normalisation over the images and pixels of each channel, in the library's mode SPATIAL: the persistent mode
// bounds the range of values. Its running variance is the unbiased one, as ours.

#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {
namespace {

/// The least epsilon that this version accepts.
double least_epsilon(const Api& api) { return at_least(api, 7, 5) ? 0.0 : 1e-5; }

struct Normalisation {
  Session& session;
  const Api& api;
  BatchNorm op;
  DType dtype;
  bool adds, adds_dw, wants_dx;
  TensorDescriptor x, y, dx, dy, channels;
  std::size_t channel_bytes, dx_bytes;

  Normalisation(const BatchNorm& batch_norm, const Spec& spec, Session& in)
      : session(in),
        api(in.api()),
        op(batch_norm),
        dtype(spec.y.dtype),
        adds(adds_dx(spec, 0)),
        adds_dw(spec.adds_dw),
        wants_dx(!spec.wants_dx.empty() && spec.wants_dx[0]),
        x(describe_value(api, spec.x[0])),
        y(describe_value(api, spec.y)),
        dx(describe_gradient(api, spec.x[0])),
        dy(describe_gradient(api, spec.y)),
        channels(describe_dense(api, spec.w[0])),
        channel_bytes(aligned(static_cast<std::size_t>(spec.y.shape.c) * size_of(spec.w[0].dtype))),
        dx_bytes(aligned(extent_bytes(spec.x[0], spec.x[0].gradient_pitch))) {
    if (op.epsilon < least_epsilon(api))
      refuse(op, "epsilon is " + std::to_string(op.epsilon) + ", and cuDNN " + api.number() + " takes 1e-5 or more");
  }

  /// The library writes all gradients or none: unwanted ones go here.
  std::size_t workspace_bytes() const { return 2 * channel_bytes + (wants_dx ? 0 : dx_bytes); }

  void* saved_mean(const Args& args) const { return args.saved; }
  void* saved_deviation(const Args& args) const { return static_cast<char*>(args.saved) + channel_bytes; }

  void inference(const Args& args) const {
    LAMINA_CUDNN(api, BatchNormalizationForwardInference, session.handle(), batch_norm_mode::spatial, one(dtype),
                 zero(dtype), x.get(), args.x[0].data, y.get(), args.y.data, channels.get(), args.w[0].data,
                 args.w[1].data, args.state[0].data, args.state[1].data, op.epsilon);
  }

  void training(const Args& args) const {
    LAMINA_CUDNN(api, BatchNormalizationForwardTraining, session.handle(), batch_norm_mode::spatial, one(dtype),
                 zero(dtype), x.get(), args.x[0].data, y.get(), args.y.data, channels.get(), args.w[0].data,
                 args.w[1].data, op.momentum, args.state[0].data, args.state[1].data, op.epsilon, saved_mean(args),
                 saved_deviation(args));
  }

  void backward(const Args& args) const {
    char* const spare = static_cast<char*>(args.workspace);
    void* const dx_to = wanted(args, 0) ? args.dx[0].data : spare + 2 * channel_bytes;
    void* const dscale = args.dw[0] ? args.dw[0].data : spare;
    void* const dshift = args.dw[1] ? args.dw[1].data : spare + channel_bytes;
    LAMINA_CUDNN(api, BatchNormalizationBackward, session.handle(), batch_norm_mode::spatial, one(dtype),
                 beta(dtype, adds && wanted(args, 0)), one(dtype), beta(dtype, adds_dw), x.get(), args.x[0].data,
                 dy.get(), args.dy.data, dx.get(), dx_to, channels.get(), args.w[0].data, dscale, dshift, op.epsilon,
                 saved_mean(args), saved_deviation(args));
  }
};

}  // namespace

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, Session& session) {
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
  return unit;
}

}  // namespace lamina::cudnn
