// Transposed convolution: the passes of the mirrored convolution, and the bias. On halves our kernels add the bias and
// compute its gradient, as in a convolution.

#include <memory>
#include <optional>

#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/backends/cudnn/library/status.h"

namespace lamina::cudnn {
namespace {

struct Parts {
  Session& session;
  const Api& api;
  DType dtype;
  bool adds_dw;
  TensorDescriptor y, dy, dx, sum;
  std::optional<TensorDescriptor> bias{};

  Parts(const Spec& spec, Session& in)
      : session(in),
        api(in.api()),
        dtype(spec.y.dtype),
        adds_dw(spec.adds_dw),
        y(describe_value(api, spec.y)),
        dy(describe_gradient(api, spec.y)),
        dx(describe_gradient(api, spec.x[0])),
        sum(describe(api, spec.x[0].shape, dtype, spec.x[0].layout, dense_pitch(spec.x[0].shape, spec.x[0].layout))) {
    if (spec.w.size() > 1 && !is_half(dtype)) bias.emplace(describe_dense(api, spec.w[1]));
  }

  void add_bias(const Args& args) const {
    if (!bias) return session.machine().add_bias(args.w[1].data, args.y, false);
    LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), bias->get(), args.w[1].data, one(dtype), y.get(),
                 args.y.data);
  }
  void bias_gradient(const Args& args) const {
    if (!bias) return session.machine().bias_gradient(args.dy, args.dw[1].data, adds_dw, args.workspace);
    LAMINA_CUDNN(api, ConvolutionBackwardBias, session.handle(), one(dtype), dy.get(), args.dy.data,
                 beta(dtype, adds_dw), bias->get(), args.dw[1].data);
  }
  void add(const Tensor& to, const Tensor& from) const {
    LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), sum.get(), from.data, one(dtype), dx.get(), to.data);
  }
};

}  // namespace

Lowered lower(const ConvTranspose&, const Spec& spec, const Choice& choice, Session& session) {
  const auto parts = std::make_shared<const Parts>(spec, session);
  const bool halves = is_half(spec.y.dtype) && spec.w.size() > 1;
  return lower_transposed(
      spec, choice,
      {.add_bias = [parts](const Args& args) { parts->add_bias(args); },
       .bias_gradient = [parts](const Args& args) { parts->bias_gradient(args); },
       .bias_gradient_bytes = halves ? session.machine().bias_gradient_bytes(spec.y.shape, spec.y.layout) : 0,
       .add = [parts](const Tensor& to, const Tensor& from) { parts->add(to, from); }},
      [&](const Spec& of, const Choice& its) { return lower(std::get<Conv>(of.op), of, its, session); });
}

}  // namespace lamina::cudnn
