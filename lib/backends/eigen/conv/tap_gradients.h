#pragma once
// The weight gradient of convolutions whose groups have few channels.
//
// A vector for each weight sums products over some bands. Its lanes are then added to a total in double. A thread has
// some groups and all their images, so that no result depends on the number of threads. The dx of these groups in an
// image may be computed right after the products, while dy is in cache.

#include <algorithm>
#include <optional>
#include <utility>

#include "filter_sums.h"

namespace lamina::eigen {

/// With `dx` it computes dx as well.
template <class T, class DataSums>
class TapGradients {
 public:
  TapGradients(const ConvUnit& c, int threads, const MicroKernels<T>& kernels, std::optional<DataSums> dx = {})
      : c_(c),
        threads_(threads),
        kernels_(&kernels),
        bands_({1, c.x.h, c.x.w, c.y.h, c.y.w, c.op.stride, taps_of(c.op)}, kernels.lanes, sizeof(T),
               std::max<std::int64_t>(1, most_products / vectors_of_row())),
        dx_(std::move(dx)) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const Band& band = bands_.largest();
    groups_at_once_ =
        std::clamp<std::int64_t>(std::min(TapBands::copied_bytes / (c.group_channels() * band.plane * size),
                                          held_bytes / (group_sums() * kernels.lanes * size)),
                                 1, c.op.groups);
    bands_at_once_ = std::max<std::int64_t>(1, most_products / (band.rows * vectors_of_row()));
  }

  std::size_t workspace_bytes() const { return part_bytes() * static_cast<std::size_t>(threads_); }

  void run(const Args& args, ThreadPool& pool) const {
    const std::size_t bytes = part_bytes();
    TapOperands<T> of_dx;
    if (dx_) of_dx = {gradient_source<T>(c_, args), args.w[0].as<T>(), args.dx[0], {.add = c_.add_dx}};
    pool.split_parts(c_.op.groups, 1, [&](int part, std::int64_t first, std::int64_t last) {
      ScratchAllocator scratch = ScratchAllocator(args.workspace).part(part, bytes);
      const Sums own = allocate(scratch);
      std::fill_n(own.copy, copied_elements(), T{0});
      if (dx_) std::fill_n(own.of_dx.copy, dx_->copied_elements(), T{0});
      if (c_.op.bias) std::fill_n(own.ones, round_up(c_.y.w, kernels_->lanes), T{1});
      for (; first < last; first += groups_at_once_) {
        const std::int64_t end = std::min(last, first + groups_at_once_), groups = end - first;
        std::fill_n(own.totals, groups * group_sums(), 0.0);
        std::fill_n(own.sums, groups * group_sums() * kernels_->lanes, T{0});
        std::int64_t bands = 0;
        for (std::int64_t image = 0; image < c_.x.n; ++image) {
          for (std::size_t band = 0; band < bands_.count(); ++band) {
            add_band(args, image, band, first, end, own);
            if (++bands % bands_at_once_ == 0) flush(groups, own);
          }
          const std::int64_t before = image * c_.op.groups;
          if (dx_) dx_->make_groups(of_dx, before + first, before + end, own.of_dx);
        }
        flush(groups, own);
        store(args, first, end, own);
      }
    });
  }

  /// The roundings of a term in its own type, and in double.
  std::pair<std::int64_t, std::int64_t> roundings() const {
    const std::int64_t bands = c_.x.n * static_cast<std::int64_t>(bands_.count()),
                       at_once = std::min(bands, bands_at_once_);
    return {at_once * bands_.largest().rows * vectors_of_row(), divide_up(bands, at_once) * kernels_->lanes};
  }

 private:
  static constexpr std::int64_t held_bytes = 8 * 1024;  // bytes of the sums of the groups in use at once: a quarter of
                                                        // a first-level cache
  static constexpr std::int64_t most_products = 512;    // most products that are summed in their own type

  std::int64_t vectors_of_row() const { return divide_up(c_.y.w, kernels_->lanes); }

  /// The sums of some groups of one thread.
  struct Sums {
    T* copy;
    T* sums;         // a vector for each weight, then for each bias
    double* totals;  // a total for each of them
    T* ones;
    typename DataSums::Scratch of_dx;
  };

  Sums allocate(ScratchAllocator& scratch) const {
    const std::int64_t sums = groups_at_once_ * group_sums();
    return {.copy = scratch.take<T>(copied_elements()),
            .sums = scratch.take<T>(sums * kernels_->lanes),
            .totals = scratch.take<double>(sums),
            .ones = scratch.take<T>(c_.op.bias ? round_up(c_.y.w, kernels_->lanes) : 0),
            .of_dx = dx_ ? dx_->allocate(scratch) : typename DataSums::Scratch()};
  }

  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  /// Number of elements of the copies of groups_at_once_ groups, and of a vector behind them that is read and written.
  std::int64_t copied_elements() const {
    return groups_at_once_ * c_.group_channels() * bands_.largest().plane + kernels_->lanes;
  }
  std::int64_t group_weights() const { return c_.group_filters() * c_.filter_weights(); }
  std::int64_t group_sums() const { return group_weights() + (c_.op.bias ? c_.group_filters() : 0); }

  /// Adds the products of one band of one image, for the groups [first, last).
  void add_band(const Args& args, std::int64_t image, std::size_t band, std::int64_t first, std::int64_t last,
                const Sums& own) const {
    const std::int64_t channels = c_.group_channels(), filters = c_.group_filters(), lanes = kernels_->lanes;
    const std::int64_t kernel = std::int64_t{c_.op.kernel.h} * c_.op.kernel.w, no_offset = 0;
    const Band& shape = bands_[band];
    const Source<T> x{args.x[0].as<T>(), args.x[0].pitch};
    bands_.copy(band, x.from(image).further(first * channels * c_.x.plane()), (last - first) * channels, *kernels_,
                own.copy);
    const Source<T> dy =
        gradient_source<T>(c_, args).from(image).further(first * filters * c_.y.plane() + shape.first * c_.y.w);
    T *sums = own.sums, *bias_sums = own.sums + (last - first) * group_weights() * lanes;
    for (std::int64_t k = 0; k < (last - first) * filters; ++k) {
      const Source<T> plane = dy.further(k * c_.y.plane());
      TapProducts<T> products{.sums = sums,
                              .dy = plane.data,
                              .mask = plane.mask,
                              .ldy = c_.y.w,
                              .from = own.copy + k / filters * channels * shape.plane,
                              .ld = bands_.ld(),
                              .offsets = shape.offsets.data(),
                              .taps = kernel,
                              .rows = shape.rows,
                              .cols = c_.y.w};
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        kernels_->taps.products(products);
        products.sums += kernel * lanes;
        products.from += shape.plane;
      }
      sums = products.sums;
      if (!c_.op.bias) continue;
      products.sums = bias_sums + k * lanes;
      products.from = own.ones;
      products.ld = 0;
      products.offsets = &no_offset;
      products.taps = 1;
      kernels_->taps.products(products);
    }
  }

  void flush(std::int64_t groups, const Sums& own) const {
    const T* lane = own.sums;
    for (std::int64_t i = 0; i < groups * group_sums(); ++i)
      for (int count = 0; count < kernels_->lanes; ++count) own.totals[i] += static_cast<double>(*lane++);
    std::fill_n(own.sums, groups * group_sums() * kernels_->lanes, T{0});
  }

  void store(const Args& args, std::int64_t first, std::int64_t last, const Sums& own) const {
    const auto put = [&](std::size_t parameter, std::int64_t at, std::int64_t count, const double* totals) {
      if (args.dw.size() <= parameter || !args.dw[parameter]) return;
      T* const to = args.dw[parameter].as<T>() + at;
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = static_cast<T>(c_.add_dw ? totals[i] + static_cast<double>(to[i]) : totals[i]);
    };
    const std::int64_t weights = group_weights(), filters = c_.group_filters(), groups = last - first;
    put(0, first * weights, groups * weights, own.totals);
    put(1, first * filters, groups * filters, own.totals + groups * weights);
  }

  ConvUnit c_;
  int threads_;
  const MicroKernels<T>* kernels_;
  TapBands bands_;
  std::optional<DataSums> dx_;
  std::int64_t groups_at_once_, bands_at_once_;
};

}  // namespace lamina::eigen
