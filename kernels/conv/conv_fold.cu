// Folds a batch norm into a convolution. A block reads and writes one filter once. It runs when parameters change, not
// in a pass.

#include "conv_fold.h"

#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void conv_fold_kernel(ConvFold<T> fold, T* w_to, T* bias_to) {
  const int k = static_cast<int>(blockIdx.x);
  const double factor = fold.norm.factor(k);
  if (w_to != nullptr) {
    const std::int64_t first = k * fold.weights;
    for (std::int64_t i = threadIdx.x; i < fold.weights; i += blockDim.x)
      w_to[first + i] = static_cast<T>(static_cast<double>(fold.w[first + i]) * factor);
  }
  if (threadIdx.x != 0) return;
  const double bias = fold.bias == nullptr ? 0 : static_cast<double>(fold.bias[k]);
  bias_to[k] = static_cast<T>((bias - static_cast<double>(fold.norm.mean[k])) * factor +
                              static_cast<double>(fold.norm.shift[k]));
}

}  // namespace

template <class T>
void conv_fold(Stream stream, const ConvFold<T>& fold, T* w_to, T* bias_to) {
  constexpr int threads = 128;
  launch(LAMINA_KERNEL(conv_fold_kernel<T>), static_cast<unsigned>(fold.filters), threads, 0, stream, fold, w_to,
         bias_to);
}

#define LAMINA_INSTANTIATE(T) template void conv_fold(Stream, const ConvFold<T>&, T*, T*);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
