// Resize: weighted sums of rows and of columns, plane by plane. The gradient uses the same weights in reverse.

#include <bit>
#include <memory>
#include <vector>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/non_temporal.h"
#include "lib/core/units/resize_axis.h"

namespace lamina::eigen {
namespace {

/// An axis of a result: element i is the sum over k below `taps` of weight(i, k) times element first[i] + k of the
/// source. `first` never decreases. The weights of a tap are adjacent, so that vectors of elements read them.
template <class T>
struct Axis {
  std::int64_t source, taps;
  std::vector<std::int32_t> first;
  std::vector<T> weights;

  Axis(std::int64_t of, std::int64_t its_taps, int size)
      : source(of),
        taps(its_taps),
        first(static_cast<std::size_t>(size)),
        weights(static_cast<std::size_t>(size * taps)) {}
  std::int64_t size() const { return static_cast<std::int64_t>(first.size()); }
  std::int64_t from(std::int64_t i) const { return first[static_cast<std::size_t>(i)]; }
  T weight(std::int64_t i, std::int64_t k) const { return weights[static_cast<std::size_t>(k * size() + i)]; }
  T& at(std::int64_t i, std::int64_t element) {
    return weights[static_cast<std::size_t>((element - from(i)) * size() + i)];
  }
};

/// The axis that makes y from x.
template <class T>
Axis<T> forward_axis(const ResizeAxis& its, int size) {
  Axis<T> axis(its.extent, its.linear ? std::min(2, its.extent) : 1, size);
  for (int i = 0; i < size; ++i) {
    const double position = its.position(i);
    const auto cell = static_cast<std::int32_t>(position);
    axis.first[static_cast<std::size_t>(i)] = std::min(cell, its.extent - static_cast<std::int32_t>(axis.taps));
    const double above = its.linear ? position - cell : 0;
    axis.at(i, cell) = static_cast<T>(1 - above);
    if (above > 0) axis.at(i, cell + 1) = static_cast<T>(above);
  }
  return axis;
}

/// The axis that makes dx from dy. The elements of dy that have read a cell follow one another.
template <class T>
Axis<T> backward_axis(const Axis<T>& forward) {
  const auto size = static_cast<int>(forward.source), source = static_cast<int>(forward.size());
  std::vector<std::int32_t> begin(static_cast<std::size_t>(size)), count(begin);
  const auto for_each_weight = [&](auto visit) {
    for (int i = 0; i < source; ++i)
      for (int k = 0; k < forward.taps; ++k)
        if (forward.weight(i, k) != 0) visit(i, static_cast<int>(forward.from(i)) + k, forward.weight(i, k));
  };
  for_each_weight([&](int i, int cell, T) {
    if (count[static_cast<std::size_t>(cell)]++ == 0) begin[static_cast<std::size_t>(cell)] = i;
  });
  Axis<T> axis(source, std::max(1, *std::max_element(count.begin(), count.end())), size);
  for (int cell = 0, last = 0; cell < size; ++cell) {
    const auto at = static_cast<std::size_t>(cell);
    if (count[at] > 0) last = std::min(begin[at], source - static_cast<int>(axis.taps));
    axis.first[at] = last;
  }
  for_each_weight([&](int i, int cell, T weight) { axis.at(cell, i) = weight; });
  return axis;
}

/// Elements of an axis that repeat: `count` times `period` elements, from `begin` on. An element has the weights of the
/// element a period before, and reads cells `step` further on. A period of 0: no element repeats.
struct Repeats {
  std::int64_t period = 0, step = 0, begin = 0, count = 0;
};

template <class T>
Repeats repeats_of(const Axis<T>& axis, std::int64_t period, std::int64_t step) {
  const auto repeats = [&](std::int64_t i) {
    bool same = i + period < axis.size() && axis.from(i + period) == axis.from(i) + step;
    for (std::int64_t k = 0; same && k < axis.taps; ++k) same = axis.weight(i, k) == axis.weight(i + period, k);
    return same;
  };
  Repeats its{period, step};
  while (its.begin < axis.size() && !repeats(its.begin)) ++its.begin;
  std::int64_t end = its.begin;
  while (repeats(end)) ++end;
  its.count = (end - its.begin) / period + 1;
  return its.count < 8 ? Repeats{} : its;  // fewer are no vector
}

/// Calls function(std::integral_constant) with the number of taps, or 0 for a number that is not compiled in.
template <class Function>
void with_taps(std::int64_t taps, Function&& function) {
  if (taps == 1) return function(std::integral_constant<int, 1>());
  if (taps == 2) return function(std::integral_constant<int, 2>());
  if (taps == 3) return function(std::integral_constant<int, 3>());
  if (taps == 4) return function(std::integral_constant<int, 4>());
  function(std::integral_constant<int, 0>());
}

/// Makes the elements of a row that repeat, as vectors.
template <int period, int step, int taps, class T>
void make_repeats(const Axis<T>& columns, const Repeats& its, const T* from, T* to, bool adds) {
  T weights[period][taps];
  const T* cells[period];
  for (int r = 0; r < period; ++r) {
    cells[r] = from + columns.from(its.begin + r);
    for (int k = 0; k < taps; ++k) weights[r][k] = columns.weight(its.begin + r, k);
  }
  to += its.begin;
  with_flag(adds, [&](auto add) {
    LAMINA_INDEPENDENT
    for (std::int64_t j = 0; j < its.count; ++j)
      for (int r = 0; r < period; ++r) {
        T sum = add ? to[j * period + r] : T(0);
        for (int k = 0; k < taps; ++k) sum += weights[r][k] * cells[r][j * step + k];
        to[j * period + r] = sum;
      }
  });
}

constexpr int lanes = 16;  // elements of a vector

/// Whether resize_row_by_permutes() may make a row: the cells of each vector of its elements lie within two vectors.
template <class T>
bool fits_two_vectors(const Axis<T>& columns) {
  for (std::int64_t i = 0; i < columns.size(); i += lanes)
    if (columns.from(std::min(i + lanes, columns.size()) - 1) + columns.taps - columns.from(i) > 2 * lanes)
      return false;
  return std::is_same_v<T, float>;
}

#if defined(__AVX512F__)
/// The lowest `count` bits, at most one for each lane of two vectors. `count` is above 0.
std::uint32_t lane_bits(std::int64_t count) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << std::min<std::int64_t>(count, 2 * lanes)) - 1);
}

/// Makes a row without gathers: a vector of cells is a permutation of two vectors. `to` has room for whole vectors if
/// it is a `buffer`, which is read soon after: reads would wait for a masked store.
template <int taps>
void resize_row_by_permutes(const Axis<float>& columns, const float* from, float* to, bool adds, bool buffer) {
  for (std::int64_t i = 0; i < columns.size(); i += lanes) {
    const std::int64_t base = columns.from(i), cells = columns.source - base;
    const std::uint32_t bits = lane_bits(cells);
    const auto mask = static_cast<__mmask16>(lane_bits(columns.size() - i));
    const __m512i at = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(mask, columns.first.data() + i),
                                        _mm512_set1_epi32(static_cast<int>(base)));
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(bits), from + base);
    const __m512 high =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>(bits >> lanes), from + std::min(base + lanes, columns.source));
    __m512 sum = adds ? _mm512_maskz_loadu_ps(mask, to + i) : _mm512_setzero_ps();
    for (int k = 0; k < taps; ++k) {
      const __m512 weights = _mm512_maskz_loadu_ps(mask, columns.weights.data() + k * columns.size() + i);
      sum =
          _mm512_fmadd_ps(weights, _mm512_permutex2var_ps(low, _mm512_add_epi32(at, _mm512_set1_epi32(k)), high), sum);
    }
    _mm512_mask_storeu_ps(to + i, buffer ? __mmask16{0xffff} : mask, sum);
  }
}
#endif

/// Makes a row of another length.
template <class T>
void resize_row(const Axis<T>& columns, const Repeats& its, [[maybe_unused]] bool by_permutes, const T* from, T* to,
                bool adds, [[maybe_unused]] bool buffer) {
  with_taps(columns.taps, [&](auto known) {
#if defined(__AVX512F__)
    if constexpr (known > 0 && std::is_same_v<T, float>)
      if (by_permutes) return resize_row_by_permutes<known>(columns, from, to, adds, buffer);
#endif
    const std::int64_t taps = known > 0 ? known : columns.taps;
    const auto make = [&](std::int64_t begin, std::int64_t end) {
      const std::int32_t* const first = columns.first.data();
      const T* const weights = columns.weights.data();
      const std::int64_t size = columns.size();
      with_flag(adds, [&](auto add) {
        LAMINA_INDEPENDENT
        for (std::int64_t i = begin; i < end; ++i) {
          T sum = add ? to[i] : T(0);
          for (std::int64_t k = 0; k < taps; ++k) sum += weights[k * size + i] * from[first[i] + k];
          to[i] = sum;
        }
      });
    };
    if constexpr (known > 0) {
      if (its.period == 2) make_repeats<2, 1, known>(columns, its, from, to, adds);
      if (its.period == 1) make_repeats<1, 2, known>(columns, its, from, to, adds);
    }
    const std::int64_t made = known > 0 ? its.period * its.count : 0;
    make(0, its.begin);
    make(its.begin + made, columns.size());
  });
}

/// Makes row i as the weighted sum of rows. row(k) is the k-th of them.
template <class T, class Row>
void sum_rows(const Axis<T>& its, std::int64_t i, const Row& row, T* to, std::int64_t count, bool adds,
              [[maybe_unused]] bool buffer) {
  with_taps(its.taps, [&](auto known) {
    if constexpr (known > 0) {
      const T* rows[known];
      T weights[known];
      for (int k = 0; k < known; ++k) {
        rows[k] = row(k);
        weights[k] = its.weight(i, k);
      }
#if defined(__AVX512F__)
      if constexpr (std::is_same_v<T, float>) {
        if (count < 4 * lanes) {
          for (std::int64_t j = 0; j < count; j += lanes) {
            const auto mask = static_cast<__mmask16>(lane_bits(count - j));
            __m512 sum = adds ? _mm512_maskz_loadu_ps(mask, to + j) : _mm512_setzero_ps();
            for (int k = 0; k < known; ++k)
              sum = _mm512_fmadd_ps(_mm512_set1_ps(weights[k]), _mm512_maskz_loadu_ps(mask, rows[k] + j), sum);
            _mm512_mask_storeu_ps(to + j, buffer ? __mmask16{0xffff} : mask, sum);
          }
          return;
        }
      }
#endif
      LAMINA_INDEPENDENT
      for (std::int64_t j = 0; j < count; ++j) {
        T sum = adds ? to[j] : T(0);
        for (int k = 0; k < known; ++k) sum += weights[k] * rows[k][j];
        to[j] = sum;
      }
    } else {
      for (std::int64_t k = 0; k < its.taps; ++k) {
        const T *const cells = row(k), weight = its.weight(i, k);
        const bool more = adds || k > 0;
        LAMINA_INDEPENDENT
        for (std::int64_t j = 0; j < count; ++j) to[j] = (more ? to[j] : T(0)) + weight * cells[j];
      }
    }
  });
}

template <class T>
struct Plane {
  Axis<T> rows, columns;
  Repeats repeats = columns.source < columns.size() ? repeats_of(columns, 2, 1) : repeats_of(columns, 1, 2);
  bool by_permutes = (repeats.count == 0 || columns.size() < 2 * lanes) && fits_two_vectors(columns);

  /// Whether columns are made before rows are summed. Takes the order that resizes fewer rows.
  bool columns_first() const { return rows.source <= rows.size(); }

  /// Elements of the buffer of a thread: rows that are not finished, and rows for non-temporal stores.
  std::int64_t buffered() const {
    return (columns_first() ? kept_rows() * lines(columns.size()) : lines(columns.source)) + stored();
  }
  /// Rows in the buffer: at least those of a sum, and a power of two, so that no row costs a division.
  std::int64_t kept_rows() const {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows.taps)));
  }
  std::int64_t stored() const { return lines(std::max<std::int64_t>(1024, columns.size())); }
  static std::int64_t lines(std::int64_t count) { return round_up(count, line_bytes / std::int64_t{sizeof(T)}); }

  void make(const T* from, T* to, T* buffer, bool adds, bool non_temporal) const {
    const std::int64_t width = columns.source, size = columns.size(), taps = rows.taps;
    const auto kept_row = [buffer, last = kept_rows() - 1, apart = lines(size)](std::int64_t row) {
      return buffer + (row & last) * apart;
    };
    T* const stored_rows = buffer + buffered() - stored();
    std::int64_t made = 0;  // source rows below `made` are in the buffer, if they are still needed
    for (std::int64_t i = 0, kept = 0; i < rows.size(); ++i) {
      const std::int64_t first = rows.from(i);
      T* const row = non_temporal ? stored_rows + kept : to + i * size;
      if (columns_first()) {
        for (made = std::max(made, first); made < first + taps; ++made)
          resize_row(columns, repeats, by_permutes, from + made * width, kept_row(made), false, true);
        sum_rows(
            rows, i, [&](std::int64_t k) { return kept_row(first + k); }, row, size, adds, false);
      } else {
        sum_rows(
            rows, i, [&](std::int64_t k) { return from + (first + k) * width; }, buffer, width, false, true);
        resize_row(columns, repeats, by_permutes, buffer, row, adds, false);
      }
      kept += size;
      if (!non_temporal || (kept + size <= stored() && i + 1 < rows.size())) continue;
      copy_non_temporal(to + (i + 1) * size - kept, stored_rows, kept);
      kept = 0;
    }
  }

  void run(ThreadPool& pool, const Args& args, const Tensor& from, const Tensor& to, bool adds) const {
    const bool non_temporal = !adds && wants_non_temporal<T>(to.shape);
    pool.split_parts(std::int64_t{to.shape.n} * to.shape.c, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      T* const buffer = static_cast<T*>(args.workspace) + part * buffered();
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t n = i / to.shape.c, c = i % to.shape.c;
        make(image<const T>(from, n) + c * from.shape.plane(), image<T>(to, n) + c * to.shape.plane(), buffer, adds,
             non_temporal);
      }
      if (non_temporal) non_temporal_fence();
    });
  }
};

}  // namespace

Lowered lower(const Resize& op, const Spec& spec, const Choice&, const Context& context) {
  const auto [rows, columns] = resize_axes(op, spec.x[0].shape);
  return with_type(spec.y.dtype, [&]<class T>() {
    const auto forward =
        std::make_shared<const Plane<T>>(Plane<T>{forward_axis<T>(rows, op.to.h), forward_axis<T>(columns, op.to.w)});
    const auto backward =
        std::make_shared<const Plane<T>>(Plane<T>{backward_axis(forward->rows), backward_axis(forward->columns)});
    ThreadPool& pool = context.pool;
    const auto workspace_of = [&](const Plane<T>& plane) {
      return static_cast<std::size_t>(pool.threads() * plane.buffered()) * sizeof(T);
    };
    return with_steps(
        empty_unit(spec), spec,
        [&pool, forward](const Args& args) { forward->run(pool, args, args.x[0], args.y, false); },
        [&pool, backward, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward->run(pool, args, args.dy, args.dx[0], adds);
        },
        workspace_of(*forward), workspace_of(*backward));
  });
}

}  // namespace lamina::eigen
