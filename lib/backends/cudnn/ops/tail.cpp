// The library's calls for the ops behind another.

#include "tail.h"

namespace lamina::cudnn {

ReluMask::ReluMask(const Spec& spec, Session& session)
    : session_(session),
      api_(session.api()),
      dtype_(spec.y.dtype),
      relu_(describe_relu(api_)),
      y_(describe_value(api_, spec.y)),
      dy_(describe_gradient(api_, spec.y)),
      copies_(spec.y.pitch != spec.y.gradient_pitch) {}

void ReluMask::run(const Args& args) const {
  HandleObject* const handle = session_.handle();
  const void* dy = args.dy.data;
  if (copies_) {  // the library requires the same strides for y and dy
    LAMINA_CUDNN(api_, TransformTensor, handle, one(dtype_), dy_.get(), dy, zero(dtype_), y_.get(), args.scratch);
    dy = args.scratch;
  }
  LAMINA_CUDNN(api_, ActivationBackward, handle, relu_.get(), one(dtype_), y_.get(), args.y.data, y_.get(), dy,
               y_.get(), args.y.data, zero(dtype_), y_.get(), args.scratch);
}

Tail::Tail(const Spec& spec, Session& session)
    : session_(session),
      api_(session.api()),
      dtype_(spec.y.dtype),
      adds_(adds_dx(spec, 1)),
      y_(describe_value(api_, spec.y)) {
  if (norm_tail(spec).add) {
    addend_.emplace(describe_value(api_, spec.x.at(1)));
    if (spec.mode == Mode::training) addend_gradient_.emplace(describe_gradient(api_, spec.x[1]));
  }
  if (ends_in_relu(spec)) relu_.emplace(describe_relu(api_));
  if (!relu_ || spec.mode == Mode::inference) return;
  mask_.emplace(spec, session);
  scratch_bytes_ = extent_bytes(spec.y, spec.y.pitch);
}

void Tail::forward(const Args& args) const {
  if (addend_)
    LAMINA_CUDNN(api_, AddTensor, session_.handle(), one(dtype_), addend_->get(), args.x[1].data, one(dtype_), y_.get(),
                 args.y.data);
  if (relu_)
    LAMINA_CUDNN(api_, ActivationForward, session_.handle(), relu_->get(), one(dtype_), y_.get(), args.y.data,
                 zero(dtype_), y_.get(), args.y.data);
}

void Tail::backward(const Args& args) const {
  if (mask_) mask_->run(args);
  addend_gradient(args);
}

void Tail::addend_gradient(const Args& args) const {
  if (addend_gradient_ && wanted(args, 1) && !same_place(args.dx[1], args.dy))
    LAMINA_CUDNN(api_, TransformTensor, session_.handle(), one(dtype_), y_.get(), dy(args), beta(dtype_, adds_),
                 addend_gradient_->get(), args.dx[1].data);
}

void Tail::require(Lowered& unit) const {
  unit.scratch_bytes = scratch_bytes_;
  unit.backward_reads_y = unit.backward_reads_y || mask_.has_value();
  if (addend_) unit.dx_is_dy[1] = !relu_;
}

}  // namespace lamina::cudnn
