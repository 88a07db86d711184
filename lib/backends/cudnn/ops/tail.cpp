// The library's calls for the ops after the first op of a unit.

#include "tail.h"

namespace lamina::cudnn {

Bias::Bias(const Spec& spec, Session& in, bool masked)
    : Calls(in, spec.y.dtype),
      adds_(spec.adds_dw),
      gradient_bytes_(is_half(dtype) ? in.machine().bias_gradient_bytes(spec.y.shape, spec.y.layout) : 0),
      y_(describe_value(api, spec.y)),
      dy_(masked || spec.mode == Mode::inference ? describe_value(api, spec.y) : describe_gradient(api, spec.y)),
      bias_(describe_dense(api, spec.w.at(1))) {}

void Bias::add(const void* bias, const Tensor& y, bool relu) const {
  if (is_half(dtype)) return session.machine().add_bias(bias, y, relu);
  LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), bias_.get(), bias, one(dtype), y_.get(), y.data);
}

void Bias::gradient(const Args& args, const Tensor& dy) const {
  if (!args.dw.at(1)) return;
  if (is_half(dtype)) return session.machine().bias_gradient(dy, args.dw[1].data, adds_, args.workspace);
  LAMINA_CUDNN(api, ConvolutionBackwardBias, session.handle(), one(dtype), dy_.get(), dy.data, beta(dtype, adds_),
               bias_.get(), args.dw[1].data);
}

ReluMask::ReluMask(const Spec& spec, Session& in)
    : Calls(in, spec.y.dtype),
      relu_(describe_activation(api, activation_mode::relu)),
      y_(describe_value(api, spec.y)),
      dy_(describe_gradient(api, spec.y)),
      copies_(spec.y.pitch != spec.y.gradient_pitch) {}

void ReluMask::run(const Args& args) const {
  HandleObject* const handle = session.handle();
  const void* dy = args.dy.data;
  if (copies_) {  // the library requires the same strides for y and dy
    LAMINA_CUDNN(api, TransformTensor, handle, one(dtype), dy_.get(), dy, zero(dtype), y_.get(), args.scratch);
    dy = args.scratch;
  }
  LAMINA_CUDNN(api, ActivationBackward, handle, relu_.get(), one(dtype), y_.get(), args.y.data, y_.get(), dy, y_.get(),
               args.y.data, zero(dtype), y_.get(), args.scratch);
}

Tail::Tail(const Spec& spec, Session& in)
    : Calls(in, spec.y.dtype), adds_(adds_dx(spec, 1)), y_(describe_value(api, spec.y)) {
  if (norm_tail(spec).add) {
    addend_.emplace(describe_value(api, spec.x.at(1)));
    if (spec.mode == Mode::training) addend_gradient_.emplace(describe_gradient(api, spec.x[1]));
  }
  if (ends_in_relu(spec)) relu_.emplace(describe_activation(api, activation_mode::relu));
  if (!relu_ || spec.mode == Mode::inference) return;
  mask_.emplace(spec, in);
  scratch_bytes_ = extent_bytes(spec.y, spec.y.pitch);
}

void Tail::forward(const Args& args) const {
  if (addend_)
    LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), addend_->get(), args.x[1].data, one(dtype), y_.get(),
                 args.y.data);
  if (relu_)
    LAMINA_CUDNN(api, ActivationForward, session.handle(), relu_->get(), one(dtype), y_.get(), args.y.data, zero(dtype),
                 y_.get(), args.y.data);
}

void Tail::backward(const Args& args) const {
  if (mask_) mask_->run(args);
  addend_gradient(args);
}

void Tail::addend_gradient(const Args& args) const {
  if (addend_gradient_ && wanted(args, 1) && !same_place(args.dx[1], args.dy))
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), y_.get(), dy(args), beta(dtype, adds_),
                 addend_gradient_->get(), args.dx[1].data);
}

void Tail::require(Lowered& unit) const {
  unit.scratch_bytes = scratch_bytes_;
  unit.backward_reads_y = unit.backward_reads_y || mask_.has_value();
  if (addend_) unit.dx_is_dy[1] = !relu_;
}

}  // namespace lamina::cudnn
