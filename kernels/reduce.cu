// The mean, sum or maximum over some axes: one number for each element of y, from its cells (CellsAlong).
//
// Forward, where elements of y lie side by side in x, a block takes 32 of them, and 8 threads share the cells of each.
// Else the lanes of a warp share the adjacent cells of an element, 8 elements a block. Sums are LongSums, and parts are
// joined in a fixed order. Backward, a thread writes one element of dx.
// Per element of x: one read forward; one write backward.

#include "reduce.h"

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int rows = 8, reduce_threads = rows * lanes;

/// Joins the parts of the threads that share an element of y: the lanes of a warp or, without `in_warp`, equal lanes of
/// the warps. The first thread gets the result. Every thread of the block calls it.
template <bool in_warp, class Result, class Part>
__device__ Part joined(Part part) {
  LAMINA_SHARED(Part[reduce_threads], parts);
  const int thread = static_cast<int>(threadIdx.x), share = in_warp ? thread % lanes : thread / lanes;
  parts[thread] = part;
  for (int half = (in_warp ? lanes : rows) / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share < half) parts[thread] = Result::join(parts[thread], parts[thread + half * (in_warp ? 1 : lanes)]);
  }
  part = parts[thread];
  __syncthreads();  // the next call may overwrite parts
  return part;
}

/// The sum of cells, divided by a divisor.
template <class Number>
struct Sum {
  using Part = double;
  double divisor;
  LongSum<Number> sum{};

  __device__ void add(Number value, int) { sum.add(value); }
  __device__ double part() const { return sum.sum(); }
  static __device__ double join(double a, double b) { return a + b; }
  __device__ void finish(double all, std::int64_t, Number& y) const { y = static_cast<Number>(all / divisor); }
};

/// Whether a is larger than b. A NaN is larger than any number.
template <class Number>
__device__ bool is_larger(Number a, Number b) {
  return !(a <= b) && b == b;
}

/// The first largest cell.
template <class Number>
struct Largest {
  struct Part {
    Number value;
    int place;  ///< -1: no cell
  };
  std::int32_t* places;
  Part best{Number(0), -1};

  __device__ void add(Number value, int place) {
    if (best.place < 0 || is_larger(value, best.value)) best = {value, place};
  }
  __device__ Part part() const { return best; }
  static __device__ Part join(const Part& a, const Part& b) {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    const bool second = is_larger(b.value, a.value) || (!is_larger(a.value, b.value) && b.place < a.place);
    return second ? b : a;
  }
  __device__ void finish(const Part& all, std::int64_t element, Number& y) const {
    y = all.value;
    if (places != nullptr) places[element] = all.place;
  }
};

template <bool in_warp, class T, class Result>
__global__ void reduce_kernel(View<const T> x, CellsAlong of, Result empty, View<T> y) {
  const int lane = static_cast<int>(threadIdx.x) % lanes, row = static_cast<int>(threadIdx.x) / lanes;
  const int share = in_warp ? lane : row, shares = in_warp ? lanes : rows, elements = in_warp ? rows : lanes;
  const std::int64_t image = std::int64_t{of.outer} * of.inner, repeat = image * of.cells;
  for (std::int64_t first = std::int64_t{blockIdx.x} * elements; first < x.n * image;
       first += std::int64_t{gridDim.x} * elements) {
    const std::int64_t element = first + (in_warp ? row : lane);
    const int n = static_cast<int>(element / image);
    const auto place = static_cast<unsigned>(element % image), outer = place / static_cast<unsigned>(of.inner);
    Result result = empty;
    if (n < x.n) {
      const T* from = x.at(n, 0) + place + std::int64_t{outer} * (of.cells - 1) * of.inner;
      for (int r = 0; r < of.repeats; ++r, from += repeat)
        for (std::int64_t k = share; k < of.cells; k += shares)
          result.add(load(from[k * of.inner]), r * of.cells + static_cast<int>(k));
    }
    const auto all = joined<in_warp, Result>(result.part());
    if (n >= x.n || share != 0) continue;
    Computed<T> value;
    result.finish(all, element, value);
    store(y.at(n, 0)[place], value);
  }
}

template <class T, class Result>
void reduce(Stream stream, const View<const T>& x, const CellsAlong& of, const Result& empty, const View<T>& y) {
  const std::int64_t count = x.n * std::int64_t{of.outer} * of.inner;
  if (of.inner == 1)
    launch(LAMINA_KERNEL(reduce_kernel<true, T, Result>), blocks_for(count, rows), reduce_threads, 0, stream, x, of,
           empty, y);
  else
    launch(LAMINA_KERNEL(reduce_kernel<false, T, Result>), blocks_for(count, lanes), reduce_threads, 0, stream, x, of,
           empty, y);
}

template <class T>
__global__ void reduce_backward_kernel(View<const T> dy, CellsAlong of, Computed<T> divisor, const std::int32_t* places,
                                       View<T> dx, bool adds) {
  for_each_element(dx, [&](int n, std::int64_t i) {
    const auto inner = static_cast<unsigned>(of.inner), cells = static_cast<unsigned>(of.cells);
    const unsigned at = static_cast<unsigned>(i), row = at / inner, outer = row / cells;
    const unsigned repeat = outer / static_cast<unsigned>(of.outer);
    const unsigned element = (outer - repeat * static_cast<unsigned>(of.outer)) * inner + (at - row * inner);
    const auto cell = static_cast<int>(repeat * cells + row - outer * cells);
    Computed<T> value = load(dy.at(n, 0)[element]) / divisor;
    if (places != nullptr && places[n * std::int64_t{of.outer} * of.inner + element] != cell) value = 0;
    put(dx.at(n, 0)[i], value, adds);
  });
}

}  // namespace

template <class T>
void reduce_sum(Stream stream, View<const T> x, const CellsAlong& of, double divisor, View<T> y) {
  reduce(stream, x, of, Sum<Computed<T>>{divisor}, y);
}

template <class T>
void reduce_max(Stream stream, View<const T> x, const CellsAlong& of, View<T> y, std::int32_t* places) {
  reduce(stream, x, of, Largest<Computed<T>>{places}, y);
}

template <class T>
void reduce_backward(Stream stream, View<const T> dy, const CellsAlong& of, double divisor, const std::int32_t* places,
                     View<T> dx, bool adds) {
  launch(LAMINA_KERNEL(reduce_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, dy, of,
         static_cast<Computed<T>>(divisor), places, dx, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                 \
  template void reduce_sum(Stream, View<const T>, const CellsAlong&, double, View<T>);        \
  template void reduce_max(Stream, View<const T>, const CellsAlong&, View<T>, std::int32_t*); \
  template void reduce_backward(Stream, View<const T>, const CellsAlong&, double, const std::int32_t*, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
