// y[n,k,p,q] += bias[k], then max(y, 0) where it is wanted: one thread for one element, read and written once.

#include "bias.h"

#include "elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void add_bias_kernel(const T* bias, View<T> y, bool relu) {
  const auto plane = static_cast<unsigned>(y.plane());
  for_each_element(y, [&](int n, std::int64_t i) {
    T value = y.at(n, 0)[i];
    if (bias != nullptr) value += bias[static_cast<unsigned>(i) / plane];
    y.at(n, 0)[i] = relu && value <= T(0) ? T(0) : value;
  });
}

}  // namespace

template <class T>
void add_bias(Stream stream, const T* bias, View<T> y, bool relu) {
  launch(LAMINA_KERNEL(add_bias_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, bias, y, relu);
}

template void add_bias(Stream, const float*, View<float>, bool);
template void add_bias(Stream, const double*, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
