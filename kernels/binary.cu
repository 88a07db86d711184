// Binary: y = f(a, b); da = dy df/da, db = dy df/db. The gradient of an operand that repeats is summed.
//
// With equal shapes, a thread computes one pack of 16 bytes, and reads every operand before it writes. Images are along
// the grid's y. Forward with an operand that repeats is the same, except that this operand's elements are read singly.
// Backward with an operand that repeats along the innermost axis alone, such as one factor for each plane: a warp takes
// one run along this axis and computes both gradients; each lane sums every 32nd element, then the lanes are added. A
// block has 8 runs, and runs are along the grid's x. Backward with other repetitions: one kernel sums each gradient
// that repeats, and another kernel computes the other gradient, one thread per element. A warp sums an element as it
// sums a run. But if the operand does not repeat along the innermost axis, each lane has an element, each of the
// block's 8 warps sums every 8th term, and these sums are added in order. Per element, forward: two reads (one if an
// operand repeats) and one write. Backward: at most three reads and two writes; with other repetitions dy and the
// operands are read once more.

#include "binary.h"

#include <utility>

#include "kernels/common/elements.h"
#include "kernels/common/fast_divide.h"
#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

using F = BinaryWork::Name;

constexpr int warps = 8;  // warps of a block

template <F f, class T>
__device__ T value_of(T a, T b) {
  if constexpr (f == F::add) return a + b;
  if constexpr (f == F::subtract) return a - b;
  if constexpr (f == F::multiply) return a * b;
  if constexpr (f == F::divide) return a / b;
  if constexpr (f == F::maximum) return a > b || a != a ? a : b;
  if constexpr (f == F::minimum) return a < b || a != a ? a : b;
}

/// The gradient of operand `of`. An operand that the gradient does not read may be any number.
template <F f, int of, class T>
__device__ T gradient(T dy, T a, T b) {
  if constexpr (f == F::add) return dy;
  if constexpr (f == F::subtract) return of == 0 ? dy : -dy;
  if constexpr (f == F::multiply) return dy * (of == 0 ? b : a);
  if constexpr (f == F::divide) return of == 0 ? dy / b : -dy * (a / b / b);
  if constexpr (f == F::maximum || f == F::minimum) {
    const bool loses = (f == F::maximum) == (of == 0) ? a < b : a > b;
    return loses ? T(0) : a == b ? dy / T(2) : dy;
  }
}

/// gradient() of elements in memory. It reads only the operands that it needs.
template <F f, int of, class T>
__device__ T gradient_at(T dy, const T* a, const T* b) {
  return gradient<f, of>(dy, binary_gradient_reads(f, of, 0) ? *a : T(0), binary_gradient_reads(f, of, 1) ? *b : T(0));
}

struct Place {
  std::int64_t a, b, y;
};

/// Offsets of the places along some axes. There are at most 2^31 - 1 places.
class Walk {
 public:
  /// Takes the axes along which operand `of` repeats or, without `repeats`, does not repeat. `of` -1: all axes.
  Walk(const BinaryWork& work, int of, bool repeats) {
    int at = 3;
    for (int i = work.axes; i-- > 0;) {
      const BinaryWork::Axis& axis = work.axis[i];
      if (of >= 0 && (axis.steps[of] == 0) != repeats) continue;
      axes_[--at] = axis;
      count_ *= axis.extent;
    }
    middle_ = FastDivide(axes_[1].extent);
    inner_ = FastDivide(axes_[2].extent);
  }
  LAMINA_HOST_DEVICE int count() const { return count_; }
  __device__ Place at(unsigned index) const {
    const Divided in = divide(index, inner_), mid = divide(in.quotient, middle_);
    return {offset(0, mid, in), offset(1, mid, in), offset(2, mid, in)};
  }

 private:
  __device__ std::int64_t offset(int which, const Divided& mid, const Divided& in) const {
    return mid.quotient * static_cast<unsigned>(axes_[0].steps[which]) +
           mid.remainder * static_cast<unsigned>(axes_[1].steps[which]) +
           in.remainder * static_cast<unsigned>(axes_[2].steps[which]);
  }

  BinaryWork::Axis axes_[3];
  FastDivide middle_, inner_;
  int count_ = 1;
};

template <F f, class T, int width>
__global__ void binary_forward_kernel(Extent extent, Images<const T> a, Images<const T> b, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(a.at(n) + i);
    const Pack<T, width> other = load_pack<width>(b.at(n) + i);
    for (int k = 0; k < width; ++k) pack.v[k] = value_of<f>(pack.v[k], other.v[k]);
    store_pack(y.at(n) + i, pack);
  });
}

template <class T>
struct Operand {
  Images<const T> images;
  bool fills;  ///< whether the operand has the shape of y
};

template <F f, class T, int width>
__global__ void binary_repeat_forward_kernel(Extent extent, Walk walk, Operand<T> a, Operand<T> b, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack_a{}, pack_b{};
    if (a.fills) pack_a = load_pack<width>(a.images.at(n) + i);
    if (b.fills) pack_b = load_pack<width>(b.images.at(n) + i);
    for (int k = 0; k < width; ++k) {
      const Place at = walk.at(static_cast<unsigned>(i) + static_cast<unsigned>(k));
      if (!a.fills) pack_a.v[k] = a.images.at(n)[at.a];
      if (!b.fills) pack_b.v[k] = b.images.at(n)[at.b];
      pack_a.v[k] = value_of<f>(pack_a.v[k], pack_b.v[k]);
    }
    store_pack(y.at(n) + i, pack_a);
  });
}

template <F f, class T, int width>
__global__ void binary_backward_kernel(Extent extent, Images<const T> a, Images<const T> b, Images<const T> dy,
                                       BinaryGradients<T> gradients) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const bool wants_a = gradients.d[0].data != nullptr, wants_b = gradients.d[1].data != nullptr;
    const Pack<T, width> d = load_pack<width>(dy.at(n) + i);
    Pack<T, width> of_a{}, of_b{}, da{}, db{};
    if ((binary_gradient_reads(f, 0, 0) && wants_a) || (binary_gradient_reads(f, 1, 0) && wants_b))
      of_a = load_pack<width>(a.at(n) + i);
    if ((binary_gradient_reads(f, 0, 1) && wants_a) || (binary_gradient_reads(f, 1, 1) && wants_b))
      of_b = load_pack<width>(b.at(n) + i);
    for (int k = 0; k < width; ++k) {
      if (wants_a) da.v[k] = gradient<f, 0>(d.v[k], of_a.v[k], of_b.v[k]);
      if (wants_b) db.v[k] = gradient<f, 1>(d.v[k], of_a.v[k], of_b.v[k]);
    }
    if (wants_a) put_pack(gradients.d[0].at(n, 0) + i, da, gradients.adds[0]);
    if (wants_b) put_pack(gradients.d[1].at(n, 0) + i, db, gradients.adds[1]);
  });
}

/// The gradients of operand `of`, which has one element for each run, and of the other operand. Runs are planes here.
template <F f, int of, class T>
__global__ void binary_runs_backward_kernel(View<const T> a, View<const T> b, View<const T> dy,
                                            BinaryGradients<T> gradients) {
  const View<T>&sums = gradients.d[of], &others = gradients.d[1 - of];
  const bool wants_sums = sums.data != nullptr, wants_others = others.data != nullptr;
  const std::int64_t runs = std::int64_t{dy.n} * dy.c, run = dy.plane();
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * warps + threadIdx.x / lanes;
  for (std::int64_t i = first; i < runs; i += std::int64_t{gridDim.x} * warps) {
    const int n = static_cast<int>(i / dy.c), c = static_cast<int>(i - std::int64_t{n} * dy.c);
    const T* const from = dy.at(n, c);
    const bool reads_one =
        (binary_gradient_reads(f, of, of) && wants_sums) || (binary_gradient_reads(f, 1 - of, of) && wants_others);
    const T one = reads_one ? *(of == 0 ? a : b).at(n, c) : T(0);
    const T* const many = (of == 0 ? b : a).at(n, c);
    LongSum<T> of_lane;
    for (std::int64_t at = lane; at < run; at += lanes) {
      const T d = from[at];
      const bool reads_many = (binary_gradient_reads(f, of, 1 - of) && wants_sums) ||
                              (binary_gradient_reads(f, 1 - of, 1 - of) && wants_others);
      const T other = reads_many ? many[at] : T(0);
      const T x = of == 0 ? one : other, z = of == 0 ? other : one;
      if (wants_sums) of_lane.add(gradient<f, of>(d, x, z));
      if (wants_others) put(others.at(n, c)[at], gradient<f, 1 - of>(d, x, z), gradients.adds[1 - of]);
    }
    if (!wants_sums) continue;
    const double sum = reduce_warp(of_lane.sum(), Plus());
    if (lane == 0) put(*sums.at(n, c), static_cast<T>(sum), gradients.adds[of]);
  }
}

/// The gradient of an operand that has the shape of y.
template <F f, int of, class T>
__global__ void binary_repeat_backward_kernel(Walk walk, View<const T> a, View<const T> b, View<const T> dy, View<T> dx,
                                              bool adds) {
  for_each_element(dy, [&](int n, std::int64_t i) {
    const Place at = walk.at(static_cast<unsigned>(i));
    put(dx.at(n, 0)[i], gradient_at<f, of>(dy.at(n, 0)[i], a.at(n, 0) + at.a, b.at(n, 0) + at.b), adds);
  });
}

/// The gradient of an operand that repeats: for each of its elements a sum of terms.
template <F f, int of, bool columns, class T>
__global__ void binary_sum_kernel(Walk kept, Walk repeats, View<const T> a, View<const T> b, View<const T> dy,
                                  View<T> dx, bool adds) {
  constexpr int slots = columns ? lanes : warps, stride = columns ? warps : lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes;
  const int slot = columns ? lane : warp, part = columns ? warp : lane;
  const std::int64_t elements = std::int64_t{dy.n} * kept.count();
  for (std::int64_t base = std::int64_t{blockIdx.x} * slots; base < elements; base += std::int64_t{gridDim.x} * slots) {
    const std::int64_t i = base + slot;
    const int n = static_cast<int>(i / kept.count());
    const auto element = static_cast<unsigned>(i - std::int64_t{n} * kept.count());
    LongSum<T> of_thread;
    if (i < elements) {
      const Place at = kept.at(element);
      for (int term = part; term < repeats.count(); term += stride) {
        const Place by = repeats.at(static_cast<unsigned>(term));
        of_thread.add(gradient_at<f, of>(dy.at(n, 0)[at.y + by.y], a.at(n, 0) + at.a + by.a, b.at(n, 0) + at.b + by.b));
      }
    }
    double sum = of_thread.sum();
    if constexpr (columns) {
      LAMINA_SHARED(double[warps][lanes], parts);
      parts[warp][lane] = sum;
      __syncthreads();
      for (int k = 1; warp == 0 && k < warps; ++k) sum += parts[k][lane];
      __syncthreads();  // the next elements overwrite parts
    } else {
      sum = reduce_warp(sum, Plus());
    }
    if (part == 0 && i < elements) put(dx.at(n, 0)[element], static_cast<T>(sum), adds);
  }
}

/// Whether an operand has the shape of y.
bool fills(const BinaryWork& work, int which) {
  for (int i = 0; i < work.axes; ++i)
    if (work.axis[i].steps[which] == 0) return false;
  return true;
}

/// Calls use(std::integral_constant<F, f>()) for the function.
template <class Use, int... i>
void with_function(F f, const Use& use, std::integer_sequence<int, i...>) {
  ((f == i ? use(std::integral_constant<F, static_cast<F>(i)>()) : void()), ...);
}
constexpr auto all = std::make_integer_sequence<int, F::functions>();

/// One gradient, if an operand also repeats in another way than along runs.
template <F f, int of, class T>
void one_gradient(Stream stream, const BinaryWork& work, View<const T> a, View<const T> b, View<const T> dy,
                  const BinaryGradients<T>& gradients) {
  const View<T>& dx = gradients.d[of];
  const bool adds = gradients.adds[of];
  if (dx.data == nullptr) return;
  if (fills(work, of)) {
    launch(LAMINA_KERNEL(binary_repeat_backward_kernel<f, of, T>), grid_of_elements(dy), elements_per_block, 0, stream,
           Walk(work, -1, false), a, b, dy, dx, adds);
    return;
  }
  const Walk kept(work, of, false), repeats(work, of, true);
  const std::int64_t elements = std::int64_t{dy.n} * kept.count();
  if (work.axis[work.axes - 1].steps[of] != 0) {
    launch(LAMINA_KERNEL(binary_sum_kernel<f, of, true, T>), blocks_for(elements, lanes), warps * lanes, 0, stream,
           kept, repeats, a, b, dy, dx, adds);
  } else {
    launch(LAMINA_KERNEL(binary_sum_kernel<f, of, false, T>), blocks_for(elements, warps), warps * lanes, 0, stream,
           kept, repeats, a, b, dy, dx, adds);
  }
}

/// The tensor with one plane for each run, or with one element for each run if the tensor repeats.
template <class T>
View<T> in_runs(View<T> x, const BinaryWork& work, int which) {
  const BinaryWork::Axis& run = work.axis[work.axes - 1];
  return {x.data, x.n, work.axes == 1 ? 1 : work.axis[0].extent, 1, run.steps[which] == 0 ? 1 : run.extent, x.pitch};
}

}  // namespace

template <class T>
void binary_forward(Stream stream, const BinaryWork& work, View<const T> a, View<const T> b, View<T> y) {
  const bool a_fills = fills(work, 0), b_fills = fills(work, 1);
  const auto run = [&](auto function) {
    constexpr F f = decltype(function)::value;
    const auto launch_repeats = [&](auto width, auto start) {
      start(LAMINA_KERNEL(binary_repeat_forward_kernel<f, T, width()>), Walk(work, -1, false), Operand<T>{a, a_fills},
            Operand<T>{b, b_fills}, y);
    };
    if (!a_fills && !b_fills) return packing_of<T>(false, y).launch_by(stream, launch_repeats);
    if (!a_fills || !b_fills) return packing_of<T>(false, y, a_fills ? a : b).launch_by(stream, launch_repeats);
    packing_of<T>(true, y, a, b).launch_by(stream, [&](auto width, auto start) {
      start(LAMINA_KERNEL(binary_forward_kernel<f, T, width()>), a, b, y);
    });
  };
  with_function(work.name, run, all);
}

template <class T>
void binary_backward(Stream stream, const BinaryWork& work, View<const T> a, View<const T> b, View<const T> dy,
                     const BinaryGradients<T>& gradients) {
  const int(&inner)[3] = work.axis[work.axes - 1].steps;
  const bool only_runs = work.axes == 1 || (work.axes == 2 && work.axis[0].steps[0] != 0 && work.axis[0].steps[1] != 0);
  const auto run = [&](auto function) {
    constexpr F f = decltype(function)::value;
    if (only_runs && inner[0] != 0 && inner[1] != 0) {
      packing_of<T>(true, dy, a, b, gradients.d[0], gradients.d[1]).launch_by(stream, [&](auto width, auto start) {
        start(LAMINA_KERNEL(binary_backward_kernel<f, T, width()>), a, b, dy, gradients);
      });
    } else if (only_runs) {
      BinaryGradients<T> in_place = gradients;
      for (int of = 0; of < 2; ++of) in_place.d[of] = in_runs(gradients.d[of], work, of);
      const View<const T> d = in_runs(dy, work, 2);
      const auto launch_runs = [&](auto of) {
        launch(LAMINA_KERNEL(binary_runs_backward_kernel<f, decltype(of)::value, T>),
               blocks_for(std::int64_t{d.n} * d.c, warps), warps * lanes, 0, stream, in_runs(a, work, 0),
               in_runs(b, work, 1), d, in_place);
      };
      inner[0] == 0 ? launch_runs(std::integral_constant<int, 0>()) : launch_runs(std::integral_constant<int, 1>());
    } else {
      const auto of_a = [&] { one_gradient<f, 0>(stream, work, a, b, dy, gradients); };
      const auto of_b = [&] { one_gradient<f, 1>(stream, work, a, b, dy, gradients); };
      const bool a_last = fills(work, 0);  // the gradient of a may be in dy's memory
      if (!a_last) of_a();
      of_b();
      if (a_last) of_a();
    }
  };
  with_function(work.name, run, all);
}

#define LAMINA_INSTANTIATE(T)                                                                           \
  template void binary_forward(Stream, const BinaryWork&, View<const T>, View<const T>, View<T>);       \
  template void binary_backward(Stream, const BinaryWork&, View<const T>, View<const T>, View<const T>, \
                                const BinaryGradients<T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
