// Transposed convolution: the passes of the mirrored convolution, and the bias. On halves our kernels add the bias and
// compute its gradient, as in a convolution.

#include <memory>

#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/cudnn/ops/tail.h"

namespace lamina::cudnn {
namespace {

struct Parts : Calls {
  std::unique_ptr<const Bias> bias;
  TensorDescriptor dx, sum;

  Parts(const Spec& spec, Session& in)
      : Calls(in, spec.y.dtype),
        dx(describe_gradient(api, spec.x[0])),
        sum(describe(api, spec.x[0].shape, dtype, spec.x[0].layout, dense_pitch(spec.x[0].shape, spec.x[0].layout))) {
    if (spec.w.size() > 1) bias = std::make_unique<Bias>(spec, in);
  }

  void add(const Tensor& to, const Tensor& from) const {
    LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), sum.get(), from.data, one(dtype), dx.get(), to.data);
  }
};

}  // namespace

Lowered lower(const ConvTranspose&, const Spec& spec, const Choice& choice, Session& session) {
  const auto parts = std::make_shared<const Parts>(spec, session);
  return lower_transposed(
      spec, choice,
      {.add_bias = [parts](const Args& args) { parts->bias->add(args.w[1].data, args.y); },
       .bias_gradient = [parts](const Args& args) { parts->bias->gradient(args, args.dy); },
       .bias_gradient_bytes = parts->bias ? parts->bias->gradient_bytes() : 0,
       .add = [parts](const Tensor& to, const Tensor& from) { parts->add(to, from); }},
      [&](const Spec& of, const Choice& its) { return lower(std::get<Conv>(of.op), of, its, session); });
}

}  // namespace lamina::cudnn
