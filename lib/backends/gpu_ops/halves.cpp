// Halves beside f32: conversions, and a bias of f32 for values of halves.

#include <cstdint>

#include "gpu_ops.h"
#include "kernels/bias.h"
#include "kernels/moves/moves.h"
#include "lib/backends/common/on_copies.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class Function>
void with_half(DType dtype, Function&& function) {
  if (dtype == DType::f16) return function.template operator()<F16>();
  function.template operator()<BF16>();
}

bool is_rows(const Shape& shape, Layout layout) { return layout == Layout::nhwc || shape.plane() == 1; }

/// A dense tensor of one channel, with all its images as one image.
template <class T>
View<T> row(const Tensor& tensor) {
  return {tensor.as<T>(), 1, tensor.shape.n, tensor.shape.h, tensor.shape.w, tensor.shape.count()};
}

/// A tensor as one matrix per image. Its rows are channels in nchw and pixels in nhwc.
template <class T>
Matrices<T> matrices(const Tensor& tensor) {
  const auto pixels = static_cast<int>(tensor.shape.plane());
  if (tensor.layout == Layout::nchw)
    return {tensor.as<T>(), tensor.shape.n, tensor.shape.c, pixels, pixels, tensor.pitch};
  return {tensor.as<T>(), tensor.shape.n, pixels, tensor.shape.c, tensor.pitch, pixels * tensor.pitch};
}

template <class From, class To>
void convert(Stream stream, const Tensor& to, const Tensor& from, bool adds) {
  if (to.layout == from.layout || to.shape.plane() == 1)
    return copy(stream, pixel_rows<const From>(from), pixel_rows<To>(to), adds);
  if (adds) throw LaunchError("a copy between layouts cannot add");
  if (!is_permuted(to.shape) && to.dense() && from.dense())
    return copy(stream, row<const From>(from), row<To>(to), false);
  transpose(stream, matrices<const From>(from), matrices<To>(to));
}

}  // namespace

void convert(const Tensor& to, const Tensor& from, bool adds, const Launcher& on) {
  on.launch([&](Stream stream) {
    if (!is_half(to.dtype) && !is_half(from.dtype)) return convert<float, float>(stream, to, from, adds);
    with_half(is_half(to.dtype) ? to.dtype : from.dtype, [&]<class Half>() {
      if (!is_half(from.dtype)) return convert<float, Half>(stream, to, from, adds);
      if (!is_half(to.dtype)) return convert<Half, float>(stream, to, from, adds);
      convert<Half, Half>(stream, to, from, adds);
    });
  });
}

void add_bias_to_halves(const void* bias, const Tensor& y, bool relu, const Launcher& on) {
  with_half(y.dtype, [&]<class Half>() {
    on.launch([&](Stream stream) {
      const auto* const from = static_cast<const float*>(bias);
      if (is_rows(y.shape, y.layout)) return add_bias_to_rows(stream, from, pixel_rows<Half>(y), relu);
      add_bias(stream, from, pixel_rows<Half>(y), relu);
    });
  });
}

void bias_gradient_of_halves(const Tensor& dy, void* db, bool adds, void* workspace, const Launcher& on) {
  with_half(dy.dtype, [&]<class Half>() {
    const View<const Half> view = pixel_rows<const Half>(dy);
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
