// y = exp(x - max) / sum over the channels.

#include "../library/common.h"

namespace lamina::cudnn {

Lowered lower(const Softmax&, const Spec& spec, const Choice&, Session& session) {
  struct Parts {
    TensorDescriptor value, gradient;
  };
  const Api& api = session.api();
  const auto parts = std::make_shared<Parts>(Parts{describe_value(api, spec.y), describe_gradient(api, spec.y)});
  const DType dtype = spec.y.dtype;
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = true;
  unit.dx_may_alias_dy[0] = true;
  unit.recompute_reads_x[0] = true;
  unit.backward_reads_y = true;
  const auto forward = [&session, &api, parts, dtype](const Args& args) {
    LAMINA_CUDNN(api, SoftmaxForward, session.handle(), softmax::accurate, softmax::over_channels, one(dtype),
                 parts->value.get(), args.x[0].data, zero(dtype), parts->value.get(), args.y.data);
  };
  unit.steps.push_back(step({Pass::forward}, "direct", forward));
  if (spec.mode == Mode::inference) return unit;
  unit.steps.push_back(step({Pass::recompute}, "direct", forward));
  const bool adds = adds_dx(spec, 0);
  unit.steps.push_back(step({Pass::backward_data}, "direct", [&session, &api, parts, dtype, adds](const Args& args) {
    if (wanted(args, 0))
      LAMINA_CUDNN(api, SoftmaxBackward, session.handle(), softmax::accurate, softmax::over_channels, one(dtype),
                   parts->value.get(), args.y.data, parts->gradient.get(), args.dy.data, beta(dtype, adds),
                   parts->gradient.get(), args.dx[0].data);
  }));
  return unit;
}

}  // namespace lamina::cudnn
