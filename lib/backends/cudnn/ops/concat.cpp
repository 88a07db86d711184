// The inputs concatenated on the channel axis: copies with strides. An input that a plan has placed inside y is
// not copied.

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {
namespace {

/// Descriptors of one input and of its channels within y, for values and for gradients.
struct Part {
  TensorDescriptor x, within_y, dx, within_dy;
  Shape shape;
  int first_channel;
  bool adds;
};

struct Join {
  Session& session;
  const Api& api;
  DType dtype;
  std::vector<Part> parts;

  Join(const Spec& spec, Session& in) : session(in), api(in.api()), dtype(spec.y.dtype) {
    int channel = 0;
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      const TensorSpec& x = spec.x[i];
      parts.push_back({describe_value(api, x), describe(api, x.shape, dtype, x.layout, spec.y.pitch),
                       describe_gradient(api, x), describe(api, x.shape, dtype, x.layout, spec.y.gradient_pitch),
                       x.shape, channel, adds_dx(spec, i)});
      channel += x.shape.c;
    }
  }

  void forward(const Args& args) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      void* const to = channel_address(args.y, part.first_channel);
      if (to == args.x[i].data && args.y.pitch == args.x[i].pitch) continue;
      LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), part.x.get(), args.x[i].data, zero(dtype),
                   part.within_y.get(), to);
    }
  }

  void backward(const Args& args) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!wanted(args, i)) continue;
      const Part& part = parts[i];
      const void* const from = channel_address(args.dy, part.first_channel);
      if (from == args.dx[i].data && args.dy.pitch == args.dx[i].pitch && !part.adds) continue;
      LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), part.within_dy.get(), from,
                   beta(dtype, part.adds), part.dx.get(), args.dx[i].data);
    }
  }
};

}  // namespace

Lowered lower(const Concat&, const Spec& spec, const Choice&, Session& session) {
  if (moves_rows(spec.op)) return session.machine().lower_by_kernels(spec);
  const auto join = std::make_shared<const Join>(spec, session);
  Lowered unit = empty_unit(spec);
  unit.steps.push_back(step({Pass::forward}, "direct", [join](const Args& args) { join->forward(args); }));
  if (spec.mode == Mode::training)
    unit.steps.push_back(step({Pass::backward_data}, "direct", [join](const Args& args) { join->backward(args); }));
  return unit;
}

}  // namespace lamina::cudnn
