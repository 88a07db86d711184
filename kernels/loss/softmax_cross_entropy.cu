// Cross entropy of a softmax over the channels of every pixel. A pixel's channels are a row.
//
// Vectors (one pixel per image): a block of 256 threads computes a row, thread t the channels t, t + 256, ...
// Maps: a thread computes one pixel and walks its channels, pixels side by side; images are along the grid's y.
// Every block leaves one partial sum, and one block adds them up (loss.cu).
// Per logit: two reads, one of them from a cache; backward one read and one write.

#include "loss.h"

#include <climits>
#include <cmath>
#include <limits>

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"
#include "kernels/common/whole_numbers.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int row_threads = 256;

struct Smaller {
  __device__ int operator()(int a, int b) const { return b < a ? b : a; }
};

/// The limits of a row's loss; the gradient is 0 outside.
template <class T>
struct LossLimits {
  T least, most;

  explicit LossLimits(double clip)
      : least(clip == 0 ? -std::numeric_limits<T>::infinity() : static_cast<T>(-std::log1p(-clip))),
        most(clip == 0 ? std::numeric_limits<T>::infinity() : static_cast<T>(-std::log(clip))) {}
};

/// Adds a row to the partial sum and returns its factor. `winner` is the first of the largest logits.
template <class T>
__device__ T add_row(LossPartial& partial, const LossLimits<T>& limits, int label, T logit, T largest, T sum,
                     int winner) {
  if (label == ignored_label) return T(0);
  partial.count += 1;
  if (label == invalid_number) {
    partial.loss += std::numeric_limits<double>::quiet_NaN();
    return std::numeric_limits<T>::quiet_NaN();
  }
  T loss = std::log(sum) - (logit - largest);
  const bool clipped = loss > limits.most || loss < limits.least;
  if (loss > limits.most) loss = limits.most;
  if (loss < limits.least) loss = limits.least;
  partial.loss += static_cast<double>(loss);
  partial.right += winner == label && sum == sum ? 1 : 0;  // if there is a NaN, no logit is the largest
  return clipped ? T(0) : 1 / sum;
}

template <class T>
__device__ void keep(const SoftmaxRows<T>& rows, std::int64_t row, T largest, T factor) {
  if (rows.largest == nullptr) return;
  rows.largest[row] = largest;
  rows.factor[row] = factor;
}

template <class T>
__global__ void softmax_cross_entropy_vectors_kernel(View<const T> x, View<const T> labels, LossLimits<T> limits,
                                                     SoftmaxRows<T> rows, LossPartial* partials) {
  const int first = static_cast<int>(threadIdx.x);
  LossPartial partial{0, 0, 0};
  for (int n = static_cast<int>(blockIdx.x); n < x.n; n += static_cast<int>(gridDim.x)) {
    const T* from = x.at(n, 0);
    T largest = from[first < x.c ? first : 0];
    for (int c = first; c < x.c; c += row_threads) largest = Larger()(largest, from[c]);
    largest = reduce_block<row_threads>(largest, Larger());
    T sum = 0;
    int winner = INT_MAX;
    for (int c = first; c < x.c; c += row_threads) {
      sum += std::exp(from[c] - largest);
      if (from[c] == largest) winner = Smaller()(winner, c);
    }
    sum = reduce_block<row_threads>(sum, Plus());
    winner = reduce_block<row_threads>(winner, Smaller());
    if (first != 0) continue;
    const int label = class_of(*labels.at(n, 0), x.c);
    keep(rows, n, largest, add_row(partial, limits, label, from[label < 0 ? 0 : label], largest, sum, winner));
  }
  if (first == 0) partials[blockIdx.x] = partial;
}

template <class T>
__global__ void softmax_cross_entropy_maps_kernel(View<const T> x, View<const T> labels, LossLimits<T> limits,
                                                  SoftmaxRows<T> rows, LossPartial* partials) {
  const std::int64_t plane = x.plane();
  LossPartial partial{0, 0, 0};
  for_each_element(labels, [&](int n, std::int64_t place) {
    const T* from = x.at(n, 0) + place;
    T largest = from[0], sum = 0;
    for (int c = 1; c < x.c; ++c) largest = Larger()(largest, from[c * plane]);
    int winner = INT_MAX;
    for (int c = x.c - 1; c >= 0; --c) {
      sum += std::exp(from[c * plane] - largest);
      if (from[c * plane] == largest) winner = c;
    }
    const int label = class_of(labels.at(n, 0)[place], x.c);
    const T logit = from[(label < 0 ? 0 : label) * plane];
    keep(rows, n * plane + place, largest, add_row(partial, limits, label, logit, largest, sum, winner));
  });
  partial.loss = reduce_block<elements_per_block>(partial.loss, Plus());
  partial.right = reduce_block<elements_per_block>(partial.right, Plus());
  partial.count = reduce_block<elements_per_block>(partial.count, Plus());
  if (threadIdx.x == 0) partials[std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = partial;
}

/// The gradient of one logit.
template <class T>
__device__ T slope(T logit, T largest, T factor, T scale, bool is_label) {
  if (factor == T(0)) return T(0);  // exp may be infinite here
  return scale * (std::exp(logit - largest) * factor - (is_label ? T(1) : T(0)));
}

template <class T>
__global__ void softmax_cross_entropy_backward_vectors_kernel(View<const T> x, View<const T> labels, View<const T> dy,
                                                              SoftmaxRows<T> rows, View<T> dx, bool adds) {
  const T scale = *dy.data * *rows.inverse_count;
  for_each_element(x, [&](int n, std::int64_t c) {
    const int label = class_of(*labels.at(n, 0), x.c);
    put(dx.at(n, 0)[c], slope(x.at(n, 0)[c], rows.largest[n], rows.factor[n], scale, c == label), adds);
  });
}

template <class T>
__global__ void softmax_cross_entropy_backward_maps_kernel(View<const T> x, View<const T> labels, View<const T> dy,
                                                           SoftmaxRows<T> rows, View<T> dx, bool adds) {
  const T scale = *dy.data * *rows.inverse_count;
  const std::int64_t plane = x.plane();
  for_each_element(labels, [&](int n, std::int64_t place) {
    const T* from = x.at(n, 0) + place;
    T* to = dx.at(n, 0) + place;
    const int label = class_of(labels.at(n, 0)[place], x.c);
    const T largest = rows.largest[n * plane + place], factor = rows.factor[n * plane + place];
    for (int c = 0; c < x.c; ++c) put(to[c * plane], slope(from[c * plane], largest, factor, scale, c == label), adds);
  });
}

dim3 forward_grid(int images, std::int64_t plane) {
  if (plane == 1) return dim3(blocks_for(images, 1));
  View<const float> labels{nullptr, images, 1, 1, static_cast<int>(plane), plane};
  return grid_of_elements(labels);
}

}  // namespace

std::int64_t softmax_cross_entropy_partials(int images, std::int64_t plane) {
  const dim3 grid = forward_grid(images, plane);
  return std::int64_t{grid.x} * grid.y;
}

template <class T>
void softmax_cross_entropy_forward(Stream stream, View<const T> logits, View<const T> labels, View<T> y, double clip,
                                   SoftmaxRows<T> rows, LossPartial* partials) {
  const dim3 grid = forward_grid(logits.n, logits.plane());
  const LossLimits<T> limits(clip);
  if (logits.plane() == 1) {
    launch(LAMINA_KERNEL(softmax_cross_entropy_vectors_kernel<T>), grid, row_threads, 0, stream, logits, labels, limits,
           rows, partials);
  } else {
    launch(LAMINA_KERNEL(softmax_cross_entropy_maps_kernel<T>), grid, elements_per_block, 0, stream, logits, labels,
           limits, rows, partials);
  }
  loss_finish(stream, partials, std::int64_t{grid.x} * grid.y, y, rows.inverse_count);
}

template <class T>
void softmax_cross_entropy_backward(Stream stream, View<const T> logits, View<const T> labels, View<const T> dy,
                                    SoftmaxRows<T> rows, View<T> dx, bool adds) {
  if (logits.plane() == 1) {
    launch(LAMINA_KERNEL(softmax_cross_entropy_backward_vectors_kernel<T>), grid_of_elements(logits),
           elements_per_block, 0, stream, logits, labels, dy, rows, dx, adds);
  } else {
    launch(LAMINA_KERNEL(softmax_cross_entropy_backward_maps_kernel<T>), grid_of_elements(labels), elements_per_block,
           0, stream, logits, labels, dy, rows, dx, adds);
  }
}

#define LAMINA_INSTANTIATE(T)                                                                                        \
  template void softmax_cross_entropy_forward(Stream, View<const T>, View<const T>, View<T>, double, SoftmaxRows<T>, \
                                              LossPartial*);                                                         \
  template void softmax_cross_entropy_backward(Stream, View<const T>, View<const T>, View<const T>, SoftmaxRows<T>,  \
                                               View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
