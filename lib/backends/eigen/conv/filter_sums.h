#pragma once
// Convolutions whose groups have a vector of filters: every number of an image is multiplied by the weights of all
// filters at once. This computes forward and, if the stride is 1, backward_data, whose "filters" are the channels of x.

#include <utility>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "tap_bands.h"

namespace lamina::eigen {

/// Operands of sums over taps, and their epilogue.
template <class T>
struct TapOperands {
  Source<T> from;
  const T* w;
  Tensor to;
  Epilogue<T> epilogue;
};

template <class T>
class FilterSums {
 public:
  static bool takes(const ConvUnit& c, Pass pass, const MicroKernels<T>& kernels) {
    const Shape& to = pass == Pass::forward ? c.y : c.x;
    if (pass != Pass::forward && c.op.stride != Size(1)) return false;
    return to.w >= FilterTaps<T>::least_columns && filters_of_vector(results_of(c, pass), kernels) > 0;
  }

  FilterSums(const ConvUnit& c, Pass pass, const MicroKernels<T>& kernels)
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
        bands_(geometry(c), kernels.lanes, sizeof(T), to_.h) {}

  std::size_t workspace_bytes(int threads) const { return part_bytes() * static_cast<std::size_t>(threads); }

  void run(const TapOperands<T>& operands, ThreadPool& pool, void* workspace) const {
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

 private:
  static int results_of(const ConvUnit& c, Pass pass) {
    return pass == Pass::forward ? c.group_filters() : c.group_channels();
  }

  /// The number of filters in a vector: all lanes or half of them, whichever divides `results`; 0 if neither does.
  static int filters_of_vector(int results, const MicroKernels<T>& kernels) {
    for (const int filters : {kernels.lanes, kernels.lanes / 2})
      if (filters >= 4 && results % filters == 0) return filters;
    return 0;
  }

  TapBands::Geometry geometry(const ConvUnit& c) const {
    const Shape& from = forward_ ? c.x : c.y;
    std::vector<Tap> taps = taps_of(c.op);
    if (!forward_)
      for (Tap& tap : taps) tap = {-tap.dh, -tap.dw};
    return {planes_, from.h, from.w, to_.h, to_.w, forward_ ? c.op.stride : Size(1), std::move(taps)};
  }

  struct Scratch {
    T* copy;
    T* weights;  // weights of a group, for each vector of filters and each tap
    T* sums;     // a vector of filters for each position of a band
    T* rows;     // sums, transposed: positions of each filter
  };

  Scratch allocate(ScratchAllocator& scratch) const {
    return {.copy = scratch.take<T>(copied_elements()),
            .weights = scratch.take<T>(taps_ * results_),
            .sums = scratch.take<T>(room() * kernels_->lanes),
            .rows = scratch.take<T>(room() * kernels_->lanes)};
  }

  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  std::int64_t copied_elements() const { return planes_ * bands_.largest().plane + kernels_->lanes; }
  std::int64_t room() const { return round_up(bands_.largest().rows * to_.w, kernels_->lanes); }

  /// In forward, `w` has a row of taps for each filter. In backward_data it has these rows for each plane of dy.
  void sort_weights(const T* w, std::int64_t group, T* sorted) const {
    w += group * taps_ * results_;
    const std::int64_t row = forward_ ? taps_ : kernel_;
    for (std::int64_t first = 0; first < results_; first += filters_) {
      for (std::int64_t at = 0; at < taps_; at += row, sorted += row * filters_) {
        const T* const from = w + (forward_ ? 0 : at * results_) + first * row;
        kernels_->transpose(sorted, filters_, from, row, nullptr, 0, filters_, row);
      }
    }
  }

  void make_band(const TapOperands<T>& operands, std::int64_t image, std::int64_t group, std::size_t band,
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
      T* const to =
          operands.to.template as<T>() + image * operands.to.pitch + result * to_.plane() + here.first * to_.w;
      store_finished<T>({.to = to,
                         .ldc = to_.plane(),
                         .from = own.rows,
                         .ldf = ld,
                         .rows = filters_,
                         .count = positions,
                         .epilogue = epilogue},
                        *kernels_);
    }
  }

  const MicroKernels<T>* kernels_;
  bool forward_;
  int planes_, results_;  // planes of a group that a sum reads; planes of a group that are made
  int filters_;           // filters of a vector
  Shape to_;
  std::int64_t groups_, from_plane_, kernel_, taps_;  // kernel: taps of a plane
  TapBands bands_;
};

}  // namespace lamina::eigen
