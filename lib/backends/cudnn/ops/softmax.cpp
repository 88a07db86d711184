// y = exp(x - max) / sum over the channels.

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

Lowered lower(const Softmax&, const Spec& spec, const Choice&, Session& session) {
  struct Parts {
    TensorDescriptor value, gradient;
  };
  const Api& api = session.api();
  const auto parts = std::make_shared<Parts>(Parts{describe_value(api, spec.y), describe_gradient(api, spec.y)});
  const DType dtype = spec.y.dtype;
  Lowered unit = in_place_unit(spec);
  const auto forward = [&session, &api, parts, dtype](const Args& args) {
    LAMINA_CUDNN(api, SoftmaxForward, session.handle(), softmax::accurate, softmax::over_channels, one(dtype),
                 parts->value.get(), args.x[0].data, zero(dtype), parts->value.get(), args.y.data);
  };
  add_steps(unit, spec, forward, [&session, &api, parts, dtype, adds = adds_dx(spec, 0)](const Args& args) {
    if (wanted(args, 0))
      LAMINA_CUDNN(api, SoftmaxBackward, session.handle(), softmax::accurate, softmax::over_channels, one(dtype),
                   parts->value.get(), args.y.data, parts->gradient.get(), args.dy.data, beta(dtype, adds),
                   parts->gradient.get(), args.dx[0].data);
  });
  return unit;
}

}  // namespace lamina::cudnn
