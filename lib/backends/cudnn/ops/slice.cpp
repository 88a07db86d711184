// Some channels of x: a copy with strides. The gradient is dy there and zero elsewhere.

#include <optional>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {
namespace {

struct Cut {
  Session& session;
  const Api& api;
  DType dtype;
  int first, last;  // channels [first, last)
  bool adds;
  TensorDescriptor y, within_x, dy, within_dx;
  std::optional<TensorDescriptor> below, above;  // the rest of dx

  Cut(const Slice& op, const Spec& spec, Session& in)
      : session(in),
        api(in.api()),
        dtype(spec.y.dtype),
        first(op.first),
        last(op.first + op.count),
        adds(adds_dx(spec, 0)),
        y(describe_value(api, spec.y)),
        within_x(describe(api, spec.y.shape, dtype, spec.y.layout, spec.x[0].pitch)),
        dy(describe_gradient(api, spec.y)),
        within_dx(describe(api, spec.y.shape, dtype, spec.y.layout, spec.x[0].gradient_pitch)) {
    const auto rest = [&](int channels) {
      Shape shape = spec.x[0].shape;
      shape.c = channels;
      return describe(api, shape, dtype, spec.y.layout, spec.x[0].gradient_pitch);
    };
    if (first > 0) below.emplace(rest(first));
    if (last < spec.x[0].shape.c) above.emplace(rest(spec.x[0].shape.c - last));
  }

  void forward(const Args& args) const {
    const void* const from = channel_address(args.x[0], first);
    if (from == args.y.data && args.x[0].pitch == args.y.pitch) return;
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), within_x.get(), from, zero(dtype), y.get(),
                 args.y.data);
  }

  void backward(const Args& args) const {
    if (!wanted(args, 0)) return;
    const Tensor& dx = args.dx[0];
    if (below && !adds) LAMINA_CUDNN(api, SetTensor, session.handle(), below->get(), dx.data, zero(dtype));
    if (above && !adds)
      LAMINA_CUDNN(api, SetTensor, session.handle(), above->get(), channel_address(dx, last), zero(dtype));
    void* const to = channel_address(dx, first);
    if (to == args.dy.data && dx.pitch == args.dy.pitch && !adds) return;
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), dy.get(), args.dy.data, beta(dtype, adds),
                 within_dx.get(), to);
  }
};

}  // namespace

Lowered lower(const Slice& op, const Spec& spec, const Choice&, Session& session) {
  if (moves_rows(spec.op)) return session.machine().lower_by_kernels(spec);
  const auto cut = std::make_shared<const Cut>(op, spec, session);
  Lowered unit = empty_unit(spec);
  unit.steps.push_back(step({Pass::forward}, "direct", [cut](const Args& args) { cut->forward(args); }));
  if (spec.mode == Mode::training)
    unit.steps.push_back(step({Pass::backward_data}, "direct", [cut](const Args& args) { cut->backward(args); }));
  return unit;
}

}  // namespace lamina::cudnn
