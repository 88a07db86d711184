// Cross entropy of a sigmoid: max(x, 0) - x label + log(1 + exp(-|x|)) for every element. An element is a decision.
//
// A thread computes one element; images are along the grid's y, dense tensors are one long image. Every block leaves
// one partial sum, and one block adds them up (loss.cu). Per element: two reads; backward two reads and one write.

#include "loss.h"

#include <cmath>
#include <limits>

#include "kernels/common/elements.h"
#include "kernels/common/reduce.h"
#include "kernels/common/whole_numbers.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The limit beyond which a logit is clipped.
template <class T>
T limit_of(double clip) {
  return clip == 0 ? std::numeric_limits<T>::infinity() : static_cast<T>(std::log1p(-clip) - std::log(clip));
}

template <class T>
__global__ void sigmoid_cross_entropy_kernel(View<const T> x, View<const T> labels, T limit, LossPartial* partials) {
  LossPartial partial{0, 0, 0};
  for_each_element(x, [&](int n, std::int64_t i) {
    const int label = class_of(labels.at(n, 0)[i], 2);
    if (label == ignored_label) return;
    const T logit = x.at(n, 0)[i];
    T z = logit;  // a NaN stays a NaN
    if (z > limit) z = limit;
    if (z < -limit) z = -limit;
    const T loss = (z > 0 ? z : T(0)) - (label == 1 ? z : T(0)) + std::log1p(std::exp(-std::abs(z)));
    partial.loss += label == invalid_number || logit != logit ? std::numeric_limits<double>::quiet_NaN()
                                                              : static_cast<double>(loss);
    partial.right += label != invalid_number && logit == logit && (logit > 0) == (label == 1) ? 1 : 0;
    partial.count += 1;
  });
  partial.loss = reduce_block<elements_per_block>(partial.loss, Plus());
  partial.right = reduce_block<elements_per_block>(partial.right, Plus());
  partial.count = reduce_block<elements_per_block>(partial.count, Plus());
  if (threadIdx.x == 0) partials[std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = partial;
}

template <class T>
__global__ void sigmoid_cross_entropy_backward_kernel(View<const T> x, View<const T> labels, View<const T> dy, T limit,
                                                      const T* inverse_count, View<T> dx, bool adds) {
  const T scale = *dy.data * *inverse_count;
  for_each_element(x, [&](int n, std::int64_t i) {
    const int label = class_of(labels.at(n, 0)[i], 2);
    const T logit = x.at(n, 0)[i];
    T slope = scale * (T(1) / (T(1) + std::exp(-logit)) - (label == 1 ? T(1) : T(0)));
    if (label == ignored_label || std::abs(logit) > limit) slope = T(0);
    if (label == invalid_number) slope = std::numeric_limits<T>::quiet_NaN();
    put(dx.at(n, 0)[i], slope, adds);
  });
}

/// A dense tensor as one image.
template <class T>
View<T> flat(View<T> view) {
  const auto count = static_cast<int>(view.count());
  return {view.data, 1, 1, 1, count, count};
}

template <class T>
bool can_be_flat(const View<T>& view) {
  return view.pitch == view.image() && view.count() <= std::numeric_limits<int>::max();
}

}  // namespace

std::int64_t sigmoid_cross_entropy_partials(int images, std::int64_t image) {
  const dim3 grid = grid_of_elements(View<const float>{nullptr, images, 1, 1, static_cast<int>(image), image});
  return std::int64_t{grid.x} * grid.y;
}

template <class T>
void sigmoid_cross_entropy_forward(Stream stream, View<const T> logits, View<const T> labels, View<T> y, double clip,
                                   T* inverse_count, LossPartial* partials) {
  if (can_be_flat(logits) && can_be_flat(labels)) {
    logits = flat(logits);
    labels = flat(labels);
  }
  const dim3 grid = grid_of_elements(logits);
  launch(LAMINA_KERNEL(sigmoid_cross_entropy_kernel<T>), grid, elements_per_block, 0, stream, logits, labels,
         limit_of<T>(clip), partials);
  loss_finish(stream, partials, std::int64_t{grid.x} * grid.y, y, inverse_count);
}

template <class T>
void sigmoid_cross_entropy_backward(Stream stream, View<const T> logits, View<const T> labels, View<const T> dy,
                                    double clip, const T* inverse_count, View<T> dx, bool adds) {
  if (can_be_flat(logits) && can_be_flat(labels) && can_be_flat(dx)) {
    logits = flat(logits);
    labels = flat(labels);
    dx = flat(dx);
  }
  launch(LAMINA_KERNEL(sigmoid_cross_entropy_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream,
         logits, labels, dy, limit_of<T>(clip), inverse_count, dx, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                         \
  template void sigmoid_cross_entropy_forward(Stream, View<const T>, View<const T>, View<T>, double, T*,              \
                                              LossPartial*);                                                          \
  template void sigmoid_cross_entropy_backward(Stream, View<const T>, View<const T>, View<const T>, double, const T*, \
                                               View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
