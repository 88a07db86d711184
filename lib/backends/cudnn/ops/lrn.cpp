// y[c] = x[c] (k + alpha/size * sum of x^2 over a window of channels)^-beta. The library divides alpha by size, too.

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {
namespace {

void check_range(const Lrn& op) {
  if (op.size < static_cast<int>(lrn::least_size) || op.size > static_cast<int>(lrn::most_size))
    refuse(op, "the library takes sizes from 1 to 16");
  if (op.size % 2 == 0) refuse(op, "with an even size the library puts the extra channel above, this op below");
  if (op.k < lrn::least_k) refuse(op, "the library takes k from 1e-5 up");
  if (op.beta < lrn::least_beta) refuse(op, "the library takes beta from 0.01 up");
}

}  // namespace

Lowered lower(const Lrn& op, const Spec& spec, const Choice&, Session& session) {
  check_range(op);
  struct Parts {
    LrnDescriptor lrn;
    TensorDescriptor value, gradient;
  };
  const Api& api = session.api();
  const auto parts =
      std::make_shared<Parts>(Parts{LrnDescriptor(api), describe_value(api, spec.y), describe_gradient(api, spec.y)});
  LAMINA_CUDNN(api, SetLRNDescriptor, parts->lrn.get(), static_cast<unsigned>(op.size), op.alpha, op.beta, op.k);
  const DType dtype = spec.y.dtype;
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  unit.backward_reads_y = true;
  const auto forward = [&session, &api, parts, dtype](const Args& args) {
    LAMINA_CUDNN(api, LRNCrossChannelForward, session.handle(), parts->lrn.get(), lrn::across_channels, one(dtype),
                 parts->value.get(), args.x[0].data, zero(dtype), parts->value.get(), args.y.data);
  };
  return with_steps(unit, spec, forward, [&session, &api, parts, dtype, adds = adds_dx(spec, 0)](const Args& args) {
    if (wanted(args, 0))
      LAMINA_CUDNN(api, LRNCrossChannelBackward, session.handle(), parts->lrn.get(), lrn::across_channels, one(dtype),
                   parts->value.get(), args.y.data, parts->gradient.get(), args.dy.data, parts->value.get(),
                   args.x[0].data, beta(dtype, adds), parts->gradient.get(), args.dx[0].data);
  });
}

}  // namespace lamina::cudnn
