// An optimiser's update. First G = gradient_scale g, times min(1, clip_norm / (norm of all G + 1e-6)) if there is a
// clip_norm. Then G += weight_decay p, p *= shrink, and:
//
//     sgd        v = decay v + gain G;  u = nesterov ? decay v + gain G : v;  p -= rate u
//     rmsprop    a = decay a + gain G^2;  p -= rate G / (sqrt(a) + epsilon)
//     adadelta   a = decay a + gain G^2;  u = G sqrt(d + epsilon) / sqrt(a + epsilon);  p -= rate u;
//                d = decay d + gain u^2
//     adam       m = decay m + gain G;  v = decay2 v + gain2 G^2;  p -= rate m / (sqrt(v) root_scale + epsilon)
//
// A thread updates one pack of 16 bytes. Per element: two reads and one write; one more of each per state. The norm: a
// block sums the squares of a slice in double, then one block adds the slices in order. The slices depend on the count
// alone. A lazy update of rows: a warp reads the gradients of one row, and updates it only if a gradient is not 0.
// With a loss scale one thread writes the factors to memory first, where the update reads them.

#include "update.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int norm_threads = 256;
constexpr int row_threads = 128;

template <class T>
struct Numbers {
  bool nesterov, clears_gradient, skips = false;
  T scale, weight_decay, shrink, rate, decay, gain, decay2, gain2, epsilon, root_scale;

  LAMINA_HOST_DEVICE explicit Numbers(const UpdateNumbers& k)
      : nesterov(k.nesterov),
        clears_gradient(k.clears_gradient),
        scale(static_cast<T>(k.gradient_scale)),
        weight_decay(static_cast<T>(k.weight_decay)),
        shrink(static_cast<T>(k.shrink)),
        rate(static_cast<T>(k.rate)),
        decay(static_cast<T>(k.decay)),
        gain(static_cast<T>(k.gain)),
        decay2(static_cast<T>(k.decay2)),
        gain2(static_cast<T>(k.gain2)),
        epsilon(static_cast<T>(k.epsilon)),
        root_scale(static_cast<T>(k.root_scale)) {}
};

/// The factors of a launch. They are its argument or, with a loss scale, in memory.
template <class T>
__device__ const Numbers<T>& factors(const Numbers<T>& given) {
  return given;
}
template <class T>
__device__ Numbers<T> factors(const Numbers<T>* given) {
  return *given;
}

/// Writes the factors to memory, in one thread.
template <class T>
__global__ void update_factors_kernel(UpdateNumbers k, const LossScaleState* state, Numbers<T>* to) {
  const auto number = static_cast<double>(state->updates);
  k.gradient_scale *= state->inverse;
  if (k.correction != UpdateCorrection::none) {
    const double first = 1 - std::pow(k.decay, number), root = std::sqrt(1 - std::pow(k.decay2, number));
    if (k.correction == UpdateCorrection::adam) {
      k.rate /= first;
      k.root_scale = 1 / root;
    } else {
      k.rate = k.rate * root / first;
    }
  }
  Numbers<T> now(k);
  now.skips = state->skips != 0;
  *to = now;
}

/// The new p of one element, and its new state. Without a velocity, sgd's decay is 0.
template <UpdateRule rule, class T>
__device__ T updated(const Numbers<T>& k, T p, T g, T& first, T& second) {
  if constexpr (rule == UpdateRule::sgd) {
    first = k.decay * first + k.gain * g;
    return p - k.rate * (k.nesterov ? k.decay * first + k.gain * g : first);
  } else if constexpr (rule == UpdateRule::rmsprop) {
    first = k.decay * first + k.gain * (g * g);
    return p - k.rate * g / (std::sqrt(first) + k.epsilon);
  } else if constexpr (rule == UpdateRule::adadelta) {
    first = k.decay * first + k.gain * (g * g);
    const T u = g * (std::sqrt(second + k.epsilon) / std::sqrt(first + k.epsilon));
    second = k.decay * second + k.gain * (u * u);
    return p - k.rate * u;
  } else {
    first = k.decay * first + k.gain * g;
    second = k.decay2 * second + k.gain2 * (g * g);
    return p - k.rate * (first / (std::sqrt(second) * k.root_scale + k.epsilon));
  }
}

template <UpdateRule rule, int states, class T, class Given>
__global__ void update_kernel(Extent extent, Given given, T* p, T* g, T* first, T* second, const double* clip) {
  constexpr int width = widest<T>;
  const auto& k = factors<T>(given);
  if constexpr (std::is_pointer_v<Given>) {
    if (k.skips) {
      if (k.clears_gradient)
        for_each_pack<width>(extent, [&](int, std::int64_t i) { store_pack(g + i, Pack<T, width>{}); });
      return;
    }
  }
  const T scale = clip == nullptr ? k.scale : static_cast<T>(static_cast<double>(k.scale) * *clip);
  for_each_pack<width>(extent, [&](int, std::int64_t i) {
    Pack<T, width> value = load_pack<width>(static_cast<const T*>(p) + i);
    Pack<T, width> gradient = load_pack<width>(static_cast<const T*>(g) + i);
    Pack<T, width> a{}, b{};
    if constexpr (states > 0) a = load_pack<width>(static_cast<const T*>(first) + i);
    if constexpr (states > 1) b = load_pack<width>(static_cast<const T*>(second) + i);
    for (int j = 0; j < width; ++j) {
      const T scaled = scale * gradient.v[j] + k.weight_decay * value.v[j];
      value.v[j] = updated<rule>(k, k.shrink * value.v[j], scaled, a.v[j], b.v[j]);
      gradient.v[j] = T(0);
    }
    store_pack(p + i, value);
    if constexpr (states > 0) store_pack(first + i, a);
    if constexpr (states > 1) store_pack(second + i, b);
    if (k.clears_gradient) store_pack(g + i, gradient);
  });
}

/// A lazy update: a warp updates one row, or leaves it.
template <UpdateRule rule, int states, class T, class Given>
__global__ void update_rows_kernel(std::int64_t rows, std::int64_t width, Given given, T* p, T* g, T* first, T* second,
                                   const double* clip) {
  constexpr int warps = row_threads / lanes;
  const auto& k = factors<T>(given);
  const T scale = clip == nullptr ? k.scale : static_cast<T>(static_cast<double>(k.scale) * *clip);
  const std::int64_t lane = threadIdx.x % lanes, step = std::int64_t{gridDim.x} * warps;
  for (std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / lanes; row < rows; row += step) {
    const std::int64_t end = (row + 1) * width;
    int any = 0;
    for (std::int64_t i = row * width + lane; i < end; i += lanes) any |= g[i] == T(0) ? 0 : 1;
    if (reduce_warp(any, Larger()) == 0) continue;
    for (std::int64_t i = row * width + lane; i < end; i += lanes) {
      if constexpr (std::is_pointer_v<Given>) {
        if (k.skips) {
          if (k.clears_gradient) g[i] = T(0);
          continue;
        }
      }
      T a{}, b{};
      if constexpr (states > 0) a = first[i];
      if constexpr (states > 1) b = second[i];
      const T scaled = scale * g[i] + k.weight_decay * p[i];
      p[i] = updated<rule>(k, k.shrink * p[i], scaled, a, b);
      if constexpr (states > 0) first[i] = a;
      if constexpr (states > 1) second[i] = b;
      if (k.clears_gradient) g[i] = T(0);
    }
  }
}

/// Writes the sum of squares of slice blockIdx.x.
template <class T>
__global__ void update_squares_kernel(const T* g, std::int64_t count, double* sums) {
  const std::int64_t first = count * blockIdx.x / gridDim.x, last = count * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (std::int64_t i = first + threadIdx.x; i < last; i += norm_threads) {
    const double value = static_cast<double>(g[i]);
    sum += value * value;
  }
  sum = reduce_block<norm_threads>(sum, Plus());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Computes the factor of the gradients from all slices, in one block. `state` is null without a loss scale.
__global__ void update_clip_kernel(const double* sums, int slices, double scale, const LossScaleState* state,
                                   double clip_norm, double* factor) {
  if (state != nullptr) scale *= state->inverse;
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < slices; i += norm_threads) sum += sums[i];
  sum = reduce_block<norm_threads>(sum, Plus());
  const double wanted = clip_norm / (std::sqrt(sum) * std::fabs(scale) + 1e-6);
  if (threadIdx.x == 0) *factor = wanted > 1 ? 1 : wanted;  // a NaN stays a NaN
}

template <UpdateRule rule, int states, class T, class Given>
void launch_with(Stream stream, Given given, const UpdateRow<T>& row, const double* clip) {
  constexpr bool has_lazy_form = rule != UpdateRule::sgd || states == 0;  // a velocity moves every row
  if constexpr (has_lazy_form) {
    if (row.lazy_row > 0) {
      const std::int64_t rows = row.count / row.lazy_row, blocks = divide_up(rows, row_threads / lanes);
      launch(LAMINA_KERNEL(update_rows_kernel<rule, states, T, Given>),
             static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 16)), row_threads, 0, stream, rows, row.lazy_row,
             given, row.p, row.g, row.first, row.second, clip);
      return;
    }
  }
  const auto fits = [](const T* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  if (row.count % widest<T> != 0 || !fits(row.p) || !fits(row.g) || !fits(row.first) || !fits(row.second))
    throw LaunchError("update_kernel: a dense update takes whole packs of 16 bytes, at multiples of 16");
  const Extent extent{1, row.count};
  launch(LAMINA_KERNEL(update_kernel<rule, states, T, Given>), grid_of_packs(extent, widest<T>), pack_threads, 0,
         stream, extent, given, row.p, row.g, row.first, row.second, clip);
}

template <UpdateRule rule, int states, class T>
void launch_update(Stream stream, const UpdateNumbers& numbers, const UpdateRow<T>& row, const double* clip) {
  if constexpr (std::is_same_v<T, float>) {
    if (row.loss_scale != nullptr) {
      static_assert(sizeof(LossScaleState) + sizeof(Numbers<T>) <= loss_scale_block);
      auto* const now = reinterpret_cast<Numbers<T>*>(row.loss_scale + 1);
      launch(LAMINA_KERNEL(update_factors_kernel<T>), 1, 1, 0, stream, numbers, row.loss_scale, now);
      return launch_with<rule, states, T, const Numbers<T>*>(stream, now, row, clip);
    }
  }
  launch_with<rule, states>(stream, Numbers<T>(numbers), row, clip);
}

}  // namespace

template <class T>
void update(Stream stream, UpdateRule rule, const UpdateNumbers& numbers, const UpdateRow<T>& row) {
  if (row.count == 0) return;
  const double* clip = nullptr;
  if (numbers.clip_norm > 0) {
    constexpr std::int64_t least = 1024;  // numbers of a slice
    const auto slices = static_cast<int>(std::clamp<std::int64_t>(row.count / least, 1, row.slices));
    double* const factor = row.sums + row.slices;
    launch(LAMINA_KERNEL(update_squares_kernel<T>), static_cast<unsigned>(slices), norm_threads, 0, stream, row.g,
           row.count, row.sums);
    launch(LAMINA_KERNEL(update_clip_kernel), 1, norm_threads, 0, stream, row.sums, slices, numbers.gradient_scale,
           row.loss_scale, numbers.clip_norm, factor);
    clip = factor;
  }
  switch (rule) {
    case UpdateRule::sgd:
      if (row.first == nullptr) return launch_update<UpdateRule::sgd, 0>(stream, numbers, row, clip);
      return launch_update<UpdateRule::sgd, 1>(stream, numbers, row, clip);
    case UpdateRule::rmsprop: return launch_update<UpdateRule::rmsprop, 1>(stream, numbers, row, clip);
    case UpdateRule::adadelta: return launch_update<UpdateRule::adadelta, 2>(stream, numbers, row, clip);
    case UpdateRule::adam: return launch_update<UpdateRule::adam, 2>(stream, numbers, row, clip);
  }
}

#define LAMINA_INSTANTIATE(T) template void update(Stream, UpdateRule, const UpdateNumbers&, const UpdateRow<T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
