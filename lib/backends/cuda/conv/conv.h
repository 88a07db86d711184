#pragma once
// Functions that the algorithms of a convolution share, and the interface of each algorithm.
//
// A batch norm that follows in inference is folded: forward then reads a filter and a bias made by prepare. ReLU is a
// part of the epilogue. Any other function has a separate kernel, which runs in place after the pass: see apply().

#include <algorithm>
#include <string>

#include "kernels/bias.h"
#include "kernels/conv/conv_fold.h"
#include "kernels/conv/conv_geometry.h"
#include "kernels/moves/moves.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/cuda/common.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {

inline ConvGeometry geometry_of(const Conv& op) {
  return {op.groups, op.kernel.h, op.kernel.w,   op.stride.h,  op.stride.w,
          op.pad.h,  op.pad.w,    op.dilation.h, op.dilation.w};
}

/// The filter that a forward pass reads, and its epilogue.
template <class T>
struct ForwardInputs {
  const T* w;  ///< the filter or, if prepare transforms filters, the transformed filter
  ConvEnd<T> end;
};

/// Layout of prepared memory: folded_bias_bytes() for the folded bias, if there is one, then the filters.
template <class T>
std::size_t folded_bias_bytes(const ConvUnit& c) {
  return c.folded ? aligned(static_cast<std::size_t>(c.op.channels) * sizeof(T)) : 0;
}
template <class T>
T* prepared_filters(const ConvUnit& c, const Args& args) {
  return reinterpret_cast<T*>(static_cast<char*>(args.prepared) + folded_bias_bytes<T>(c));
}

/// Makes the inputs of forward. If an Add follows, copies the Add's other operand to y first; forward then adds to y.
template <class T>
ForwardInputs<T> begin_forward(Stream stream, const ConvUnit& c, const Args& args) {
  if (c.add && !same_place(args.x[1], args.y)) copy(stream, view<const T>(args.x[1]), view<T>(args.y), false);
  if (c.folded) return {prepared_filters<T>(c, args), {static_cast<const T*>(args.prepared), c.add, c.relu}};
  return {args.w[0].as<const T>(), {c.op.bias ? args.w[1].as<const T>() : nullptr, c.add, c.relu}};
}

/// The parameters of a convolution and its batch norm, for the kernels that fold them.
template <class T>
ConvFold<T> fold_of(const ConvUnit& c, const Args& args) {
  const std::size_t norm = c.op.bias ? 2 : 1;  // the batch norm's first parameter
  return {{.scale = args.w[norm].as<const T>(),
           .shift = args.w[norm + 1].as<const T>(),
           .mean = args.state[0].as<const T>(),
           .variance = args.state[1].as<const T>(),
           .epsilon = c.epsilon},
          args.w[0].as<const T>(),
          c.op.bias ? args.w[1].as<const T>() : nullptr,
          c.op.channels,
          c.filter_weights()};
}

/// dy for backward: masked by y if the unit ends in a ReLU.
template <class T>
Masked<T> masked_dy(const ConvUnit& c, const Args& args) {
  Masked<T> dy{view<const T>(args.dy), {}};
  if (c.relu) dy.mask = view<const T>(args.y);
  return dy;
}

/// A tensor of this shape without data, for computing sizes.
template <class T>
View<T> empty_view(const Shape& shape) {
  return {nullptr, shape.n, shape.c, shape.h, shape.w, shape.image()};
}

/// Writes the bias gradient, if the op has a bias and the gradient is wanted. Takes backward_bias_bytes of
/// args.workspace, which may be reused afterwards.
template <class T>
void backward_bias(Stream stream, const ConvUnit& c, const Args& args, const Masked<T>& dy) {
  if (c.op.bias && args.dw.size() > 1 && args.dw[1])
    bias_gradient(stream, dy, args.dw[1].as<T>(), c.add_dw, args.workspace);
}
inline std::size_t backward_bias_bytes(const ConvUnit& c) {
  return c.op.bias ? bias_gradient_bytes(c.op.channels, c.y.n * c.y.plane()) : 0;
}

/// Whether forward reads transformed filters. In inference prepare makes them.
template <class Kernels>
concept TakesPrepared = requires {
  Kernels::takes_prepared;
};

/// One pass. `Kernels` has the launchers of an algorithm: a struct such as ConvImplicitGemm.
template <class Kernels, class T>
class ConvPass final : public Kernel {
 public:
  ConvPass(const ConvUnit& c, Pass pass, const Launcher& on) : c_(c), pass_(pass), on_(on) {
    const View<const T> x = empty_view<const T>(c_.x), y = empty_view<const T>(c_.y);
    if (pass_ == Pass::forward)
      bytes_ = prepared_ ? 0 : Kernels::forward_bytes(g_, x, empty_view<T>(c_.y));
    else if (pass_ == Pass::backward_data)
      bytes_ = Kernels::backward_data_bytes(g_, y, empty_view<T>(c_.x));
    else
      bytes_ = std::max(Kernels::backward_weights_bytes(g_, x, y), backward_bias_bytes(c_));
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void run(const Args& args) override {
    on_.launch([&](Stream stream) {
      T* const workspace = static_cast<T*>(args.workspace);
      if (pass_ == Pass::forward) {
        const ForwardInputs<T> in = begin_forward<T>(stream, c_, args);
        Kernels::forward(stream, g_, view<const T>(args.x[0]), prepared_ ? prepared_filters<T>(c_, args) : in.w,
                         view<T>(args.y), in.end, prepared_ ? nullptr : workspace);
        return apply(stream, c_.activation, args.y);
      }
      const Masked<T> dy = masked_dy<T>(c_, args);
      if (pass_ == Pass::backward_data) {
        if (wanted(args, 0))
          Kernels::backward_data(stream, g_, args.w[0].as<const T>(), dy, view<T>(args.dx[0]), c_.add_dx, workspace);
        return;
      }
      backward_bias(stream, c_, args, dy);
      if (!args.dw.empty() && args.dw[0])
        Kernels::backward_weights(stream, g_, view<const T>(args.x[0]), dy, args.dw[0].as<T>(), workspace, c_.add_dw);
    });
  }

 private:
  ConvUnit c_;
  Pass pass_;
  const Launcher& on_;
  ConvGeometry g_ = geometry_of(c_.op);
  bool prepared_ = TakesPrepared<Kernels> && c_.inference;
  std::size_t bytes_ = 0;
};

/// The step of one pass.
template <class Kernels>
Lowered::Step conv_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return with_type(machine.backend, c.dtype, [&]<class T>() -> Lowered::Step {
    return {{{pass}, Kernels::name}, std::make_shared<ConvPass<Kernels, T>>(c, pass, machine)};
  });
}

/// The text that refuses a number above a limit: "gemm_1x1 takes up to 65535 groups, not 70000".
inline std::string limit(const std::string& name, const char* what, std::int64_t most, std::int64_t given) {
  return name + " takes up to " + std::to_string(most) + " " + what + ", not " + std::to_string(given);
}

/// The step of a pass by im2col_gemm.
Lowered::Step im2col_gemm_step(const ConvUnit&, Pass, const Choice&, Machine&);

/// Cycles of forward or the data gradient on a large device in f32, by the model of docs/algorithms/implicit_gemm.md.
std::int64_t implicit_gemm_cycles(const ConvUnit&, Pass);

/// The reason why the algorithm cannot run this convolution. Empty: it can.
std::string implicit_gemm_refusal(const ConvUnit&, Pass, Machine&);
std::string im2col_gemm_refusal(const ConvUnit&, Pass, Machine&);

constexpr const char* winograd_4x4_name = "winograd_4x4";

/// The reason why the algorithm cannot run the convolution. Empty: it can.
std::string winograd_4x4_refusal(const ConvUnit&, Pass, Machine&);

/// Whether the models predict that winograd_4x4 is faster than implicit_gemm: see docs/algorithms/winograd_4x4.md.
bool winograd_4x4_pays(const ConvUnit&, Pass, Machine&);

/// The step of any pass, and the filters that forward wants prepared in inference.
Lowered::Step winograd_4x4_step(const ConvUnit&, Pass, const Choice&, Machine&);
Prepared winograd_4x4_filters(const ConvUnit&, Machine&);

}  // namespace lamina::LAMINA_CUDA_SPACE
