// Sums over taps of a vector of filters at each position.

#include "filter_sums.h"

#include <algorithm>

namespace lamina::eigen {
namespace {

int results_of(const ConvUnit& c, Pass pass) { return pass == Pass::forward ? c.group_filters() : c.group_channels(); }

/// The number of filters in a vector: all lanes, else half of them; 0 if neither divides `results`.
template <class T>
int filters_of_vector(int results, const MicroKernels<T>& kernels) {
  for (const int filters : {kernels.lanes, kernels.lanes / 2})
    if (filters >= 4 && results % filters == 0) return filters;
  return 0;
}

TapBands bands_of(const ConvUnit& c, Pass pass, int lanes, std::size_t element_bytes) {
  const bool forward = pass == Pass::forward;
  const Shape &from = forward ? c.x : c.y, &to = forward ? c.y : c.x;
  const int sign = forward ? 1 : -1;
  std::vector<Tap> taps;
  for (int r = 0; r < c.op.kernel.h; ++r)
    for (int s = 0; s < c.op.kernel.w; ++s)
      taps.push_back({sign * (r * c.op.dilation.h - c.op.pad.h), sign * (s * c.op.dilation.w - c.op.pad.w)});
  const auto count = static_cast<std::int64_t>(taps.size());
  return {{forward ? c.group_channels() : c.group_filters(),
           from.h,
           from.w,
           to.h,
           to.w,
           forward ? c.op.stride : Size(1),
           std::move(taps),
           {0, count}},
          lanes,
          element_bytes,
          to.h};
}

}  // namespace

template <class T>
bool FilterSums<T>::takes(const ConvUnit& c, Pass pass, const MicroKernels<T>& kernels) {
  const Shape& to = pass == Pass::forward ? c.y : c.x;
  if (pass != Pass::forward && c.op.stride != Size(1)) return false;
  return to.w >= FilterTaps<T>::least_columns && filters_of_vector(results_of(c, pass), kernels) > 0;
}

template <class T>
FilterSums<T>::FilterSums(const ConvUnit& c, Pass pass, const MicroKernels<T>& kernels)
    : kernels_(&kernels),
      forward_(pass == Pass::forward),
      planes_(forward_ ? c.group_channels() : c.group_filters()),
      results_(results_of(c, pass)),
      filters_(filters_of_vector(results_, kernels)),
      to_(forward_ ? c.y : c.x),
      groups_(c.op.groups),
      from_plane_((forward_ ? c.x : c.y).plane()),
      kernel_(std::int64_t{c.op.kernel.h} * c.op.kernel.w),
      taps_(kernel_ * planes_),
      bands_(bands_of(c, pass, kernels.lanes, sizeof(T))) {}

template <class T>
typename FilterSums<T>::Scratch FilterSums<T>::allocate(ScratchAllocator& scratch) const {
  Scratch own{};
  own.copy = scratch.take<T>(copied_elements());
  own.weights = scratch.take<T>(taps_ * results_);
  own.sums = scratch.take<T>(room() * kernels_->lanes);
  own.rows = scratch.take<T>(room() * kernels_->lanes);
  return own;
}

template <class T>
void FilterSums<T>::run(const TapOperands<T>& operands, ThreadPool& pool, void* workspace) const {
  const std::size_t bytes = part_bytes();
  const std::int64_t images = to_.n;
  pool.split_parts(images * groups_, 1, [&](int part, std::int64_t first, std::int64_t last) {
    ScratchAllocator scratch = ScratchAllocator(workspace).part(part, bytes);
    const Scratch own = allocate(scratch);
    std::fill_n(own.copy, copied_elements(), T{0});
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t group = i / images;
      if (i == first || i % images == 0) sort_weights(operands.w, group, own.weights);
      for (std::size_t band = 0; band < bands_.count(); ++band) make_band(operands, i % images, group, band, own);
    }
  });
}

/// The weights are, in forward, a row of taps for each filter; in backward_data such rows for each plane of dy.
template <class T>
void FilterSums<T>::sort_weights(const T* w, std::int64_t group, T* sorted) const {
  w += group * taps_ * results_;
  const std::int64_t row = forward_ ? taps_ : kernel_;
  for (std::int64_t first = 0; first < results_; first += filters_) {
    for (std::int64_t at = 0; at < taps_; at += row, sorted += row * filters_) {
      const T* const from = w + (forward_ ? 0 : at * results_) + first * row;
      kernels_->transpose(sorted, filters_, from, row, nullptr, 0, filters_, row);
    }
  }
}

template <class T>
void FilterSums<T>::make_band(const TapOperands<T>& operands, std::int64_t image, std::int64_t group, std::size_t band,
                              const Scratch& own) const {
  const Band& here = bands_[band];
  bands_.copy(band, operands.from.from(image).further(group * planes_ * from_plane_), planes_, *kernels_, own.copy);
  const auto sum = filters_ == kernels_->lanes ? kernels_->taps.filters : kernels_->taps.half_filters;
  const std::int64_t positions = here.rows * to_.w, ld = round_up(positions, kernels_->lanes);
  for (std::int64_t first = 0; first < results_; first += filters_) {
    const std::int64_t result = group * results_ + first;
    const Epilogue<T> epilogue = operands.epilogue.from(result);
    sum({own.sums, own.copy, bands_.ld(), here.offsets.data(), own.weights + first * taps_, taps_, here.rows, to_.w,
         epilogue.scale});
    kernels_->transpose(own.rows, ld, own.sums, kernels_->lanes, nullptr, 0, ld, kernels_->lanes);
    T* const to = operands.to.template as<T>() + image * operands.to.pitch + result * to_.plane() + here.first * to_.w;
    store_finished<T>({.to = to,
                       .ldc = to_.plane(),
                       .step = 1,
                       .from = own.rows,
                       .ldf = ld,
                       .rows = filters_,
                       .count = positions,
                       .epilogue = epilogue},
                      *kernels_);
  }
}

template class FilterSums<float>;
template class FilterSums<double>;

}  // namespace lamina::eigen
