// Ops whose y is one function of x, element by element: ReLU and Pointwise.

#include "kernels/pointwise.h"

#include <variant>

#include "gpu_ops.h"
#include "lib/core/units/functions.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

Lowered lower_pointwise(const Spec& spec, const Launcher& on) {
  const PointwiseFunction f = function_of(spec.op);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        pointwise_unit(spec), spec, on,
        [f](Stream stream, const Args& args) {
          pointwise_forward(stream, f, elements<const T>(args.x[0]), elements<T>(args.y));
        },
        to_dx(spec, [f](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          const Tensor& v = f.reads_x ? args.x[0] : args.y;
          pointwise_backward(stream, f, elements<const T>(v), elements<const T>(args.dy), elements<T>(dx), adds);
        }));
  });
}

}  // namespace

PointwiseFunction function_of(const Op& op) {
  static_assert(static_cast<int>(Function::pow) == PointwiseFunction::pow);
  if (const auto* const its = std::get_if<Pointwise>(&op))
    return {static_cast<PointwiseFunction::Name>(its->function), its->a, its->b, row_of(its->function).reads_x};
  return {std::holds_alternative<Relu>(op) ? PointwiseFunction::relu : PointwiseFunction::none};
}

PointwiseFunction tail_function(const Spec& spec) {
  return spec.tail.empty() ? PointwiseFunction{} : function_of(spec.tail.back());
}

void apply(Stream stream, const std::optional<Pointwise>& function, const Tensor& y) {
  if (!function) return;
  const bool gaps = y.layout == Layout::nhwc && y.pitch != y.shape.c;
  with_storage("", y.dtype, [&]<class T>() {
    pointwise_forward(stream, function_of(*function), gaps ? pixel_rows<const T>(y) : elements<const T>(y),
                      gaps ? pixel_rows<T>(y) : elements<T>(y));
  });
}

Lowered lower(const Relu&, const Spec& spec, const Launcher& on) { return lower_pointwise(spec, on); }
Lowered lower(const Pointwise&, const Spec& spec, const Launcher& on) { return lower_pointwise(spec, on); }

}  // namespace lamina::LAMINA_CUDA_SPACE
