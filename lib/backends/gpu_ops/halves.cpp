// Halves beside numbers of f32: conversions, and what a library of products in halves leaves to us.

#include <cstdint>
#include <limits>
#include <string>

#include "gpu_ops.h"
#include "kernels/bias.h"
#include "kernels/moves/copy.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The pixels of nhwc as images of one pixel, with their channels.
template <class T>
View<T> rows(const Tensor& tensor) {
  if (tensor.layout == Layout::nchw) return view<T>(tensor);
  const std::int64_t pixels = tensor.shape.n * tensor.shape.plane();
  if (pixels > std::numeric_limits<int>::max())
    throw LaunchError("halves in nhwc have " + std::to_string(pixels) + " pixels, more than 2^31 - 1; use nchw");
  return {tensor.as<T>(), static_cast<int>(pixels), tensor.shape.c, 1, 1, tensor.pitch};
}

template <class Function>
void with_half(DType dtype, Function&& function) {
  if (dtype == DType::f16) return function.template operator()<F16>();
  function.template operator()<BF16>();
}

bool is_rows(const Shape& shape, Layout layout) { return layout == Layout::nhwc || shape.plane() == 1; }

}  // namespace

void convert(const Tensor& to, const Tensor& from, bool adds, const Launcher& on) {
  with_half(is_half(to.dtype) ? to.dtype : from.dtype, [&]<class Half>() {
    on.launch([&](Stream stream) {
      if (is_half(to.dtype)) return copy(stream, rows<const float>(from), rows<Half>(to), adds);
      copy(stream, rows<const Half>(from), rows<float>(to), adds);
    });
  });
}

void add_bias_to_halves(const void* bias, const Tensor& y, bool relu, const Launcher& on) {
  with_half(y.dtype, [&]<class Half>() {
    on.launch([&](Stream stream) { add_bias(stream, static_cast<const float*>(bias), rows<Half>(y), relu); });
  });
}

void bias_gradient_of_halves(const Tensor& dy, void* db, bool adds, void* workspace, const Launcher& on) {
  with_half(dy.dtype, [&]<class Half>() {
    const View<const Half> view = rows<const Half>(dy);
    on.launch([&](Stream stream) {
      auto* const to = static_cast<float*>(db);
      if (is_rows(dy.shape, dy.layout)) return bias_gradient_of_rows(stream, view, to, adds, workspace);
      bias_gradient(stream, Masked<Half>{view, {}}, to, adds, workspace);
    });
  });
}

std::size_t bias_gradient_of_halves_bytes(const Shape& shape, Layout layout) {
  const std::int64_t pixels = shape.n * shape.plane();
  return is_rows(shape, layout) ? bias_gradient_of_rows_bytes(shape.c, pixels) : bias_gradient_bytes(shape.c, pixels);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
