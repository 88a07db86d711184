// ReLU, sigmoid and tanh by the library's activations.

#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {
namespace {

/// `keeps_x`: whether the gradient is given x; otherwise y is passed in its place.
Lowered lower_activation(int mode, bool keeps_x, const Spec& spec, Session& session) {
  struct Parts : Ends {
    ActivationDescriptor activation;
    Parts(int mode, const Spec& spec, Session& in) : Ends(spec, in), activation(describe_activation(api, mode)) {}
  };
  const auto parts = std::make_shared<const Parts>(mode, spec, session);
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_x[0] = keeps_x;
  const auto forward = [parts, dtype = spec.y.dtype](const Args& args) {
    LAMINA_CUDNN(parts->api, ActivationForward, parts->session.handle(), parts->activation.get(), one(dtype),
                 parts->x.get(), args.x[0].data, zero(dtype), parts->y.get(), args.y.data);
  };
  return with_steps(
      unit, spec, forward, [parts, dtype = spec.y.dtype, keeps_x, adds = adds_dx(spec, 0)](const Args& args) {
        if (wanted(args, 0))
          LAMINA_CUDNN(parts->api, ActivationBackward, parts->session.handle(), parts->activation.get(), one(dtype),
                       parts->y.get(), args.y.data, parts->dy.get(), args.dy.data, parts->x.get(),
                       keeps_x ? args.x[0].data : args.y.data, beta(dtype, adds), parts->dx.get(), args.dx[0].data);
      });
}

}  // namespace

// The mask of the gradient can be read from y.
Lowered lower(const Relu&, const Spec& spec, const Choice& choice, Session& session) {
  Lowered unit = lower_activation(activation_mode::relu, false, spec, session);
  for (const Pass pass : {Pass::forward, Pass::backward_data}) graph::offer_engines(unit, spec, pass, choice, session);
  return unit;
}

// The library documents no gradient without x, so x is kept as well as y.
Lowered lower(const Pointwise& op, const Spec& spec, const Choice&, Session& session) {
  if (!is_of_library(op)) return session.machine().lower_by_kernels(spec);
  const bool is_tanh = op.function == Function::tanh;
  return lower_activation(is_tanh ? activation_mode::tanh : activation_mode::sigmoid, true, spec, session);
}

}  // namespace lamina::cudnn
