// Pooling by the library. Some of its versions refuse windows that reach beyond the padding. These windows then run on
// a padded copy of x, or are refused.

#include <limits>
#include <memory>

#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {
namespace {

/// The window of a pooling op.
struct Window {
  Size window, stride, pad;
};

bool looks_for_maxima(int mode) { return mode == pooling_mode::max_deterministic; }

/// Minus infinity in the tensor's type: by the manual the value of cudnnSetTensor has the type of the tensor.
const void* minus_infinity(DType dtype) {
  static constexpr double f64 = -std::numeric_limits<double>::infinity();
  static constexpr float f32 = -std::numeric_limits<float>::infinity();
  static constexpr std::uint16_t f16 = 0xfc00, bf16 = 0xff80;
  switch (dtype) {
    case DType::f64: return &f64;
    case DType::f16: return &f16;
    case DType::bf16: return &bf16;
    default: return &f32;
  }
}

/// One pooling of one unit. The library rounds the number of windows down. If an op rounds up and gets more windows,
/// the library is called anyway, since some versions accept them. If a version refuses, x is copied to the workspace
/// and padded with rows and columns of minus infinity as far as the windows reach. From then on only the copy is used.
/// Means cannot use such a copy: for them the refusal remains.
class Pooling : Ends {
 public:
  Pooling(const Op& op, const Spec& spec, Session& in, int mode, const Window& w) : Ends(spec, in), pooling_(api) {
    LAMINA_CUDNN(api, SetPooling2dDescriptor, pooling_.get(), mode, nan::propagate, w.window.h, w.window.w, w.pad.h,
                 w.pad.w, w.stride.h, w.stride.w);
    Shape padded = spec.x[0].shape;
    padded.h = covered(padded.h, spec.y.shape.h, w.window.h, w.stride.h, w.pad.h);
    padded.w = covered(padded.w, spec.y.shape.w, w.window.w, w.stride.w, w.pad.w);
    if (padded == spec.x[0].shape) return;
    if (mode == pooling_mode::average_with_padding)
      refuse(op, "a window reaches beyond the padding, and the library would count cells there");
    if (!looks_for_maxima(mode)) return;
    const Layout layout = spec.x[0].layout;
    TensorDescriptor whole = describe(api, padded, dtype, layout, dense_pitch(padded, layout));
    const Shape& all = spec.x[0].shape;
    TensorDescriptor image(api);
    const int c = layout == Layout::nchw ? padded.h * padded.w : 1, pixel = layout == Layout::nchw ? 1 : padded.c;
    LAMINA_CUDNN(api, SetTensor4dDescriptorEx, image.get(), data_type_of(dtype), all.n, all.c, all.h, all.w,
                 static_cast<int>(padded.image()), c, padded.w * pixel, pixel);
    padded_ = std::make_unique<Padded>(Padded{std::move(whole), std::move(image), aligned(dense_bytes(padded, dtype))});
  }

  std::size_t forward_workspace_bytes() const { return padded_ ? padded_->x_bytes : 0; }
  std::size_t backward_workspace_bytes() const { return padded_ ? 2 * padded_->x_bytes : 0; }

  void forward(const Args& args) {
    if (!padded_ || !padded_->in_use) {
      const Status status = need(api, api.PoolingForward, "cudnnPoolingForward")(
          session.handle(), pooling_.get(), one(dtype), x.get(), args.x[0].data, zero(dtype), y.get(), args.y.data);
      if (!gives_way(status, "cudnnPoolingForward")) return;
    }
    copy_padded(args);
    LAMINA_CUDNN(api, PoolingForward, session.handle(), pooling_.get(), one(dtype), padded_->whole.get(),
                 args.workspace, zero(dtype), y.get(), args.y.data);
  }

  /// Maxima need x and y (`reads_values`). Means need neither, and get dx and dy in their place.
  void backward(const Args& args, bool reads_values, bool adds) {
    if (!wanted(args, 0)) return;
    if (!padded_ || !padded_->in_use) {
      const void* const y_data = reads_values ? args.y.data : args.dy.data;
      const void* const x_data = reads_values ? args.x[0].data : args.dx[0].data;
      const Status status = need(api, api.PoolingBackward, "cudnnPoolingBackward")(
          session.handle(), pooling_.get(), one(dtype), y.get(), y_data, dy.get(), args.dy.data, x.get(), x_data,
          beta(dtype, adds), dx.get(), args.dx[0].data);
      if (!gives_way(status, "cudnnPoolingBackward")) return;
    }
    copy_padded(args);
    void* const copied = static_cast<char*>(args.workspace) + padded_->x_bytes;
    LAMINA_CUDNN(api, PoolingBackward, session.handle(), pooling_.get(), one(dtype), y.get(), args.y.data, dy.get(),
                 args.dy.data, padded_->whole.get(), args.workspace, zero(dtype), padded_->whole.get(), copied);
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), padded_->image.get(), copied, beta(dtype, adds),
                 dx.get(), args.dx[0].data);
  }

 private:
  struct Padded {
    TensorDescriptor whole, image;  // the copy, and the part of the copy that is x
    std::size_t x_bytes;
    bool in_use = false;
  };

  /// Whether the library refused x as it is, and the copy takes its place. Throws for another failure.
  bool gives_way(Status status, const char* call) {
    if (padded_ && refused(api, status)) return padded_->in_use = true;
    check(api, status, call, __FILE__, __LINE__);
    return false;
  }

  void copy_padded(const Args& args) const {
    LAMINA_CUDNN(api, SetTensor, session.handle(), padded_->whole.get(), args.workspace, minus_infinity(dtype));
    LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), x.get(), args.x[0].data, zero(dtype),
                 padded_->image.get(), args.workspace);
  }

  PoolingDescriptor pooling_;
  std::unique_ptr<Padded> padded_;
};

/// The unit of a pooling op: forward, recompute, backward.
Lowered lower_pooling(const Op& op, const Spec& spec, const Choice& choice, Session& session, int mode,
                      const Window& window) {
  const auto pooling = std::make_shared<Pooling>(op, spec, session, mode, window);
  const bool maxima = looks_for_maxima(mode), adds = adds_dx(spec, 0);
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = maxima;
  unit.backward_reads_y = maxima;
  unit = with_steps(
      unit, spec, [pooling](const Args& args) { pooling->forward(args); },
      [pooling, maxima, adds](const Args& args) { pooling->backward(args, maxima, adds); },
      pooling->forward_workspace_bytes(), pooling->backward_workspace_bytes());
  // An engine for the gradient of a max pool reads the indices that an engine for forward has stored.
  const bool forward = graph::offer_engines(unit, spec, Pass::forward, choice, session);
  if (maxima && forward && spec.mode == Mode::training)
    unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count());
  if (forward || !maxima) graph::offer_engines(unit, spec, Pass::backward_data, choice, session);
  return unit;
}

}  // namespace

/// Takes the mode whose gradient has the same bits on every run.
Lowered lower(const MaxPool& op, const Spec& spec, const Choice& choice, Session& session) {
  return lower_pooling(op, spec, choice, session, pooling_mode::max_deterministic, {op.window, op.stride, op.pad});
}

Lowered lower(const AveragePool& op, const Spec& spec, const Choice& choice, Session& session) {
  const int mode = op.count_padding ? pooling_mode::average_with_padding : pooling_mode::average_without_padding;
  return lower_pooling(op, spec, choice, session, mode, {op.window, op.stride, op.pad});
}

/// One window as large as the plane.
Lowered lower(const GlobalAveragePool& op, const Spec& spec, const Choice& choice, Session& session) {
  const Size plane(spec.x[0].shape.h, spec.x[0].shape.w);
  return lower_pooling(op, spec, choice, session, pooling_mode::average_without_padding, {plane, plane, 0});
}

}  // namespace lamina::cudnn
