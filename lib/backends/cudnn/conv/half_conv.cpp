// Half forms of filters and their gradients, and images whose channels are padded to eight.

#include "half_conv.h"

#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {
namespace {

constexpr int channels_together = 8;  // channels of 16 bits, as tensor cores take them

}  // namespace

Spec as_given(const Conv& op, Spec spec, const Session& session) {
  if (!is_half(spec.y.dtype)) return spec;
  TensorSpec &x = spec.x[0], &w = spec.w[0];
  w.dtype = spec.y.dtype;
  const bool is_first = x.shape.c < channels_together && (spec.wants_dx.empty() || !spec.wants_dx[0]);
  if (session.engines == nullptr && is_first && op.groups == 1 && spec.y.layout == Layout::nhwc)
    x.shape.c = w.shape.c = channels_together, x.pitch = w.pitch = channels_together;
  return spec;
}

HalfConv::HalfConv(const Conv& op, const Spec& spec, Session& in) : Calls(in, spec.y.dtype) {
  const Spec given = as_given(op, spec, session);
  filter_pitch_ = given.w[0].pitch;
  filter_bytes_ = aligned(dense_bytes(given.w[0].shape, given.w[0].dtype));
  image_bytes_ = aligned(dense_bytes(given.x[0].shape, given.x[0].dtype));
  if (given.x[0].shape == spec.x[0].shape) return;
  x_ = std::make_unique<TensorDescriptor>(describe_value(api, spec.x[0]));
  whole_ = std::make_unique<TensorDescriptor>(describe_value(api, given.x[0]));
  part_ = std::make_unique<TensorDescriptor>(describe(api, spec.x[0].shape, dtype, Layout::nhwc, given.x[0].pitch));
}

Tensor HalfConv::in_halves(Tensor filter, void* data) const {
  filter.data = data;
  filter.dtype = dtype;
  if (whole_) filter.pitch = filter_pitch_;
  return filter;
}

void HalfConv::write_filter(const Tensor& w, void* to) const {
  if (whole_) session.machine().device().fill(to, 0, filter_bytes_);
  session.machine().convert(in_halves(w, to), w, false);
}

void HalfConv::take_gradient(void* from, const Tensor& dw, bool adds) const {
  session.machine().convert(dw, in_halves(dw, from), adds);
}

const void* HalfConv::image(const Args& args, void* room) const {
  if (!whole_) return args.x[0].data;
  LAMINA_CUDNN(api, SetTensor, session.handle(), whole_->get(), room, zero(dtype));
  LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), x_->get(), args.x[0].data, zero(dtype), part_->get(),
               room);
  return room;
}

}  // namespace lamina::cudnn
