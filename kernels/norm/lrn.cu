// Local response normalisation: y[c] = x[c] scale[c]^-beta, scale[c] = k + alpha/size * sum of x^2 over the window of
// c. dx[i] = dy[i] scale[i]^-beta - 2 beta alpha/size x[i] * sum over the c whose window contains i of
//         dy[c] x[c] scale[c]^(-beta - 1).
//
// A thread computes a run of channels of one pixel, with pixels side by side: pixels along the grid's x, runs along z,
// images along y. It holds the window's squares (backward: also its ratios) in registers and shifts them by one channel
// a step, so that x and dy are read once per run and its halo. This is for size 5; other sizes read the window again,
// from the cache. The sum is computed anew for every channel, in the channels' order: a running sum, which subtracts
// values that leave the window, would keep their rounding errors.
// Per element: one read and one write, backward two reads and one write, times 1 + (halo / run).

#include "lrn.h"

#include <cmath>
#include <cstdint>

#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int run = 16;  // channels of a thread
constexpr int threads = 128;

template <class T>
struct Numbers {
  int below, above;  // channels that the window of c reaches: c - below to c + above
  T k, alpha_per_cell, beta;

  explicit Numbers(const LrnNumbers& op)
      : below(op.size / 2),
        above(op.size - 1 - op.size / 2),
        k(static_cast<T>(op.k)),
        alpha_per_cell(static_cast<T>(op.alpha / op.size)),
        beta(static_cast<T>(op.beta)) {}
};

/// scale^-beta. The usual exponents use square roots, each rounded once.
template <class T>
__device__ T negative_power(T scale, T beta) {
  if (beta == T(0.75)) {
    const T root = std::sqrt(scale);
    return 1 / (root * std::sqrt(root));
  }
  if (beta == T(0.5)) return 1 / std::sqrt(scale);
  return std::pow(scale, -beta);
}

/// One pixel's channels; channels out of range are 0.
template <class Stored>
struct Column {
  const Stored* data;
  std::int64_t plane;
  int channels;

  __device__ Computed<Stored> operator[](int c) const {
    return c < 0 || c >= channels ? Computed<Stored>(0) : load(data[c * plane]);
  }
};

/// The scale of channel c. It keeps the window's squares in registers, so it must be called for consecutive channels.
/// With a `size` of 0 it takes any window, keeps no squares, and may be called for channels in any order.
template <class Stored, int size>
class Scale {
  using T = Computed<Stored>;

 public:
  __device__ Scale(const Numbers<T>& numbers, const Column<Stored>& x, int first) : numbers_(numbers), x_(x) {
    for (int i = 1; i < size; ++i) squares_[i] = square(first - 1 - size / 2 + i);
  }

  __device__ T at(int c) {
    T sum = 0;
    if constexpr (size == 0) {
      for (int i = c - numbers_.below; i <= c + numbers_.above; ++i) sum += x_[i] * x_[i];
    } else {
      for (int i = 1; i < size; ++i) squares_[i - 1] = squares_[i];
      squares_[size - 1] = square(c + size - 1 - size / 2);
      sum = squares_[0];
      for (int i = 1; i < size; ++i) sum += squares_[i];
    }
    return numbers_.k + numbers_.alpha_per_cell * sum;
  }

 private:
  __device__ T square(int c) const {
    const T value = x_[c];
    return value * value;
  }
  const Numbers<T>& numbers_;
  const Column<Stored>& x_;
  T squares_[size > 0 ? size : 1];
};

/// dy[c] scale[c]^-beta, and the same times x[c] / scale[c].
template <class T>
struct Terms {
  T direct, ratio;
};

template <class Stored, int size, class T = Computed<Stored>>
__device__ Terms<T> terms(const Numbers<T>& numbers, const Column<Stored>& x, const Column<Stored>& dy,
                          Scale<Stored, size>& scale, int c) {
  const T at = scale.at(c), direct = dy[c] * negative_power(at, numbers.beta);
  return {direct, direct * x[c] / at};
}

/// Calls body(image, pixel, first channel, last channel) for every run of this thread.
template <class T, class Body>
__device__ void for_each_run(const View<T>& view, Body body) {
  View<T> pixels = view;
  pixels.c = 1;
  for_each_element(pixels, [&](int n, std::int64_t place) {
    for (int c = static_cast<int>(blockIdx.z) * run; c < view.c; c += static_cast<int>(gridDim.z) * run)
      body(n, place, c, c + run < view.c ? c + run : view.c);
  });
}

template <class T, int size>
__global__ void lrn_forward_kernel(Numbers<Computed<T>> numbers, View<const T> x, View<T> y) {
  for_each_run(y, [&](int n, std::int64_t place, int first, int last) {
    const Column<T> column = {x.at(n, 0) + place, x.plane(), x.c};
    Scale<T, size> scale(numbers, column, first);
    for (int c = first; c < last; ++c) store(y.at(n, c)[place], column[c] * negative_power(scale.at(c), numbers.beta));
  });
}

/// The kernel for sizes whose window is held in registers.
template <class T, int size>
__global__ void lrn_backward_kernel(Numbers<Computed<T>> numbers, View<const T> x, View<const T> dy, View<T> dx,
                                    bool adds) {
  constexpr int below = size / 2, above = size - 1 - below;
  const Computed<T> factor = 2 * numbers.beta * numbers.alpha_per_cell;
  for_each_run(dx, [&](int n, std::int64_t place, int first, int last) {
    const Column<T> values = {x.at(n, 0) + place, x.plane(), x.c}, gradients = {dy.at(n, 0) + place, dy.plane(), dy.c};
    // Channel c is in the windows of c - above to c + below: terms are computed `below` channels ahead.
    Scale<T, size> scale(numbers, values, first - above);
    Terms<Computed<T>> window[size];
    for (int i = 1; i < size; ++i) window[i] = terms(numbers, values, gradients, scale, first - 1 - above + i);
    for (int c = first; c < last; ++c) {
      for (int i = 1; i < size; ++i) window[i - 1] = window[i];
      window[size - 1] = terms(numbers, values, gradients, scale, c + below);
      Computed<T> sum = window[0].ratio;
      for (int i = 1; i < size; ++i) sum += window[i].ratio;
      put(dx.at(n, c)[place], window[above].direct - factor * values[c] * sum, adds);
    }
  });
}

/// The kernel for any size: it reads every window again from x and dy.
template <class T>
__global__ void lrn_backward_any_kernel(Numbers<Computed<T>> numbers, View<const T> x, View<const T> dy, View<T> dx,
                                        bool adds) {
  const Computed<T> factor = 2 * numbers.beta * numbers.alpha_per_cell;
  for_each_run(dx, [&](int n, std::int64_t place, int first, int last) {
    const Column<T> values = {x.at(n, 0) + place, x.plane(), x.c}, gradients = {dy.at(n, 0) + place, dy.plane(), dy.c};
    Scale<T, 0> scale(numbers, values, first);
    for (int c = first; c < last; ++c) {
      const int begin = c - numbers.above < 0 ? 0 : c - numbers.above;
      const int end = c + numbers.below < x.c ? c + numbers.below + 1 : x.c;
      Computed<T> sum = 0, direct = 0;
      for (int i = begin; i < end; ++i) {
        const Terms<Computed<T>> of = terms(numbers, values, gradients, scale, i);
        sum += of.ratio;
        if (i == c) direct = of.direct;
      }
      put(dx.at(n, c)[place], direct - factor * values[c] * sum, adds);
    }
  });
}

template <class T>
dim3 grid_of_runs(const View<T>& view) {
  const std::int64_t blocks = divide_up(view.plane(), threads);
  return dim3(static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 30)),
              static_cast<unsigned>(std::min(view.n, 65535)),
              static_cast<unsigned>(std::min(divide_up(view.c, run), 65535)));
}

}  // namespace

template <class T>
void lrn_forward(Stream stream, const LrnNumbers& op, View<const T> x, View<T> y) {
  const auto run_kernel = [&](auto kernel, const char* name) {
    launch(kernel, name, grid_of_runs(y), threads, 0, stream, Numbers<Computed<T>>(op), x, y);
  };
  if (op.size == 5) return run_kernel(LAMINA_KERNEL(lrn_forward_kernel<T, 5>));
  run_kernel(LAMINA_KERNEL(lrn_forward_kernel<T, 0>));
}

template <class T>
void lrn_backward(Stream stream, const LrnNumbers& op, View<const T> x, View<const T> dy, View<T> dx, bool adds) {
  const auto run_kernel = [&](auto kernel, const char* name) {
    launch(kernel, name, grid_of_runs(dx), threads, 0, stream, Numbers<Computed<T>>(op), x, dy, dx, adds);
  };
  if (op.size == 5) return run_kernel(LAMINA_KERNEL(lrn_backward_kernel<T, 5>));
  run_kernel(LAMINA_KERNEL(lrn_backward_any_kernel<T>));
}

#define LAMINA_INSTANTIATE(T)                                                   \
  template void lrn_forward(Stream, const LrnNumbers&, View<const T>, View<T>); \
  template void lrn_backward(Stream, const LrnNumbers&, View<const T>, View<const T>, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
