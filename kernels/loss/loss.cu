// The end of a loss: adds up partial sums. One block has 256 threads; thread t adds partials t, t + 256, ...

#include "loss.h"

#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int finish_threads = 256;

template <class T>
__global__ void loss_finish_kernel(const LossPartial* partials, std::int64_t count, View<T> y, T* inverse_count) {
  LossPartial sum{0, 0, 0};
  for (std::int64_t i = threadIdx.x; i < count; i += finish_threads) {
    sum.loss += partials[i].loss;
    sum.right += partials[i].right;
    sum.count += partials[i].count;
  }
  sum.loss = reduce_block<finish_threads>(sum.loss, Plus());
  sum.right = reduce_block<finish_threads>(sum.right, Plus());
  sum.count = reduce_block<finish_threads>(sum.count, Plus());
  if (threadIdx.x != 0) return;
  const bool any = sum.count > 0;
  *y.at(0, 0) = any ? static_cast<T>(sum.loss / sum.count) : T(0);
  *y.at(0, 1) = any ? static_cast<T>(sum.right / sum.count) : T(0);
  if (inverse_count != nullptr) *inverse_count = any ? static_cast<T>(1 / sum.count) : T(0);
}

}  // namespace

template <class T>
void loss_finish(Stream stream, const LossPartial* partials, std::int64_t count, View<T> y, T* inverse_count) {
  launch(LAMINA_KERNEL(loss_finish_kernel<T>), 1, finish_threads, 0, stream, partials, count, y, inverse_count);
}

#define LAMINA_INSTANTIATE(T) template void loss_finish(Stream, const LossPartial*, std::int64_t, View<T>, T*);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
