// y = exp(x - max) / sum along an axis, or its logarithm. The library takes channels only. Values are dense, so any
// other axis is described to the library as the channels of more, smaller images.

#include "lib/backends/cudnn/library/common.h"
#include "lib/core/units/along.h"

namespace lamina::cudnn {

Lowered lower(const Softmax& op, const Spec& spec, const Choice&, Session& session) {
  struct Parts {
    TensorDescriptor value, gradient;
  };
  const Api& api = session.api();
  TensorSpec y = spec.y;
  if (op.axis != Axis::channel) {
    const AxisCells of = along(y.shape, op);
    y.shape = {y.shape.n * of.outer, of.cells, 1, of.inner};
    y.pitch = y.shape.image();
    if (y.gradient_pitch != 0) y.gradient_pitch = y.pitch;
  }
  const auto parts = std::make_shared<Parts>(Parts{describe_value(api, y), describe_gradient(api, y)});
  const int algorithm = op.log ? softmax::log : softmax::accurate;
  const DType dtype = spec.y.dtype;
  const auto forward = [&session, &api, parts, dtype, algorithm](const Args& args) {
    LAMINA_CUDNN(api, SoftmaxForward, session.handle(), algorithm, softmax::over_channels, one(dtype),
                 parts->value.get(), args.x[0].data, zero(dtype), parts->value.get(), args.y.data);
  };
  return with_steps(in_place_unit(spec), spec, forward,
                    [&session, &api, parts, dtype, algorithm, adds = adds_dx(spec, 0)](const Args& args) {
                      if (wanted(args, 0))
                        LAMINA_CUDNN(api, SoftmaxBackward, session.handle(), algorithm, softmax::over_channels,
                                     one(dtype), parts->value.get(), args.y.data, parts->gradient.get(), args.dy.data,
                                     beta(dtype, adds), parts->gradient.get(), args.dx[0].data);
                    });
}

}  // namespace lamina::cudnn
