// Concat and Slice of channels: copies with strides between a tensor and its channels within a whole one. What a plan
// has placed inside the whole is not copied.

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {
namespace {

/// A tensor of some channels, and the same channels within a whole tensor, for values and for gradients.
struct ChannelRun {
  Session& session;
  const Api& api;
  DType dtype;
  int first;
  bool adds;  ///< to the gradient that is written
  TensorDescriptor value, value_within, gradient, gradient_within;

  ChannelRun(const TensorSpec& run, const TensorSpec& whole, int first_channel, bool adds_gradient, Session& in)
      : session(in),
        api(in.api()),
        dtype(run.dtype),
        first(first_channel),
        adds(adds_gradient),
        value(describe_value(api, run)),
        value_within(describe(api, run.shape, dtype, run.layout, whole.pitch)),
        gradient(describe_gradient(api, run)),
        gradient_within(describe(api, run.shape, dtype, run.layout, whole.gradient_pitch)) {}

  void gather(const Tensor& whole, const Tensor& run, bool gradients) const {
    const TensorDescriptor &within = gradients ? gradient_within : value_within, &own = gradients ? gradient : value;
    move(within, channel_address(whole, first), own, run.data, whole.pitch == run.pitch, gradients && adds);
  }

  void scatter(const Tensor& run, const Tensor& whole, bool gradients) const {
    const TensorDescriptor &within = gradients ? gradient_within : value_within, &own = gradients ? gradient : value;
    move(own, run.data, within, channel_address(whole, first), whole.pitch == run.pitch, gradients && adds);
  }

 private:
  void move(const TensorDescriptor& from, const void* from_data, const TensorDescriptor& to, void* to_data,
            bool same_pitch, bool adds_to) const {
    if (from_data == to_data && same_pitch && !adds_to) return;
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), from.get(), from_data, beta(dtype, adds_to),
                 to.get(), to_data);
  }
};

/// The channels of dx that a slice leaves out: they become 0.
struct Rest {
  int first;
  TensorDescriptor gradient;
};

std::vector<Rest> rests_of(const Slice& op, const TensorSpec& x, const Api& api) {
  std::vector<Rest> rests;
  for (const auto& [first, last] : {std::pair(0, op.first), std::pair(op.first + op.count, x.shape.c)}) {
    Shape shape = x.shape;
    shape.c = last - first;
    if (shape.c > 0) rests.push_back({first, describe(api, shape, x.dtype, x.layout, x.gradient_pitch)});
  }
  return rests;
}

}  // namespace

Lowered lower(const Concat&, const Spec& spec, const Choice&, Session& session) {
  if (moves_rows(spec.op)) return session.machine().lower_by_kernels(spec);
  const auto runs = std::make_shared<std::vector<ChannelRun>>();
  int channel = 0;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    runs->emplace_back(spec.x[i], spec.y, channel, adds_dx(spec, i), session);
    channel += spec.x[i].shape.c;
  }
  Lowered unit = empty_unit(spec);
  unit.steps.push_back(step({Pass::forward}, "direct", [runs](const Args& args) {
    for (std::size_t i = 0; i < runs->size(); ++i) (*runs)[i].scatter(args.x[i], args.y, false);
  }));
  if (spec.mode == Mode::training)
    unit.steps.push_back(step({Pass::backward_data}, "direct", [runs](const Args& args) {
      for (std::size_t i = 0; i < runs->size(); ++i)
        if (wanted(args, i)) (*runs)[i].gather(args.dy, args.dx[i], true);
    }));
  return unit;
}

Lowered lower(const Slice& op, const Spec& spec, const Choice&, Session& session) {
  if (moves_rows(spec.op)) return session.machine().lower_by_kernels(spec);
  const auto run = std::make_shared<const ChannelRun>(spec.y, spec.x[0], op.first, adds_dx(spec, 0), session);
  const auto rests = std::make_shared<const std::vector<Rest>>(rests_of(op, spec.x[0], session.api()));
  Lowered unit = empty_unit(spec);
  unit.steps.push_back(
      step({Pass::forward}, "direct", [run](const Args& args) { run->gather(args.x[0], args.y, false); }));
  if (spec.mode == Mode::training)
    unit.steps.push_back(step({Pass::backward_data}, "direct", [run, rests](const Args& args) {
      if (!wanted(args, 0)) return;
      for (const Rest& rest : *rests)
        if (!run->adds)
          LAMINA_CUDNN(run->api, SetTensor, run->session.handle(), rest.gradient.get(),
                       channel_address(args.dx[0], rest.first), zero(run->dtype));
      run->scatter(args.dy, args.dx[0], true);
    }));
  return unit;
}

}  // namespace lamina::cudnn
