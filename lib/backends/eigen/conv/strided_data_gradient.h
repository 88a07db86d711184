#pragma once
// The data gradient as products, one for each residue of the positions of x modulo the stride: weights times columns of
// dy, for the taps that reach these positions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/column_product.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

/// The taps of each residue, along rows and along columns.
inline auto taps_of_axes(const ConvUnit& c) {
  const Conv& op = c.op;
  return std::pair(taps_of_residues(c.x.h, op.kernel.h, op.stride.h, op.pad.h, op.dilation.h),
                   taps_of_residues(c.x.w, op.kernel.w, op.stride.w, op.pad.w, op.dilation.w));
}

constexpr std::int64_t filters_at_once = 32;  // filters whose weights are copied together: whole lines of memory

/// to[k * taps + t] = from[k * from_filter + taps[t] * from_place] for k in [0, filters).
template <class T>
void gather_taps(T* to, const T* from, std::int64_t from_filter, std::int64_t from_place, std::int64_t filters,
                 std::span<const int> taps) {
  for (std::int64_t k = 0; k < filters; ++k) {
    for (const int tap : taps) *to++ = from[k * from_filter + tap * from_place];
  }
}

/// The same, vectorised, for filters_at_once filters that are side by side in each place.
template <int Taps, class T>
void interleave_taps(T* to, const T* from, std::span<const int> taps) {
  const T* rows[Taps];
  for (int t = 0; t < Taps; ++t) rows[t] = from + taps[static_cast<std::size_t>(t)] * filters_at_once;
  LAMINA_INDEPENDENT
  for (std::int64_t k = 0; k < filters_at_once; ++k) {
    for (int t = 0; t < Taps; ++t) to[k * Taps + t] = rows[t][k];
  }
}

/// Sorts weights of `filters` filters by one of the functions above. The rows of `from` have filters_at_once filters.
template <class T>
void sort_taps(T* to, const T* from, std::int64_t filters, std::span<const int> taps) {
  const std::size_t count = filters == filters_at_once ? taps.size() : 0;
  switch (count) {
    case 1: return interleave_taps<1>(to, from, taps);
    case 2: return interleave_taps<2>(to, from, taps);
    case 4: return interleave_taps<4>(to, from, taps);
    default: return gather_taps(to, from, 1, filters_at_once, filters, taps);
  }
}

template <class T>
class StridedDataGradient {
 public:
  StridedDataGradient(const ConvUnit& problem, int threads, const MicroKernels<T>& kernels)
      : c_(problem), kernels_(&kernels) {
    const Conv& op = c_.op;
    const auto [by_row, by_column] = taps_of_axes(c_);
    for (int h = 0; h < std::min(op.stride.h, c_.x.h); ++h) reached_rows_.push_back(by_row.contains(h));
    for (int w = 0; w < std::min(op.stride.w, c_.x.w); ++w)
      if (!by_column.contains(w)) gap_columns_.push_back(w);
    for (const auto& [h, rs] : by_row) {
      for (const auto& [w, ss] : by_column) {
        std::vector<Tap> taps;
        std::vector<int> indices;
        for (const AxisTap& r : rs) {
          for (const AxisTap& s : ss) {
            taps.push_back({r.offset, s.offset});
            indices.push_back(r.index * op.kernel.w + s.index);
          }
        }
        // Channels that are multiples of a quarter page apart would share few sets of a cache.
        constexpr std::int64_t quarter_page = 1024 / static_cast<std::int64_t>(sizeof(T));
        const auto depth = static_cast<std::int64_t>(taps.size()) * c_.group_filters();
        const std::int64_t ld = depth % quarter_page == 0 ? depth + kernels.lanes : depth;
        Columns columns({c_.y.n, c_.group_filters(), c_.y.h, c_.y.w}, rows(h), cols(w), 1, taps, c_.relu);
        residues_.push_back({h, w, std::move(indices), group_weights_, ld,
                             ColumnProduct<T>(std::move(columns), c_.group_channels(), threads, kernels)});
        group_weights_ += ld * c_.group_channels();
        part_bytes_ = std::max(part_bytes_, residues_.back().product.workspace_bytes());
        parts_ = std::max(parts_, residues_.back().product.parts());
      }
    }
    has_gaps_ = !gap_columns_.empty() || by_row.size() < reached_rows_.size();
    weight_bytes_ =
        static_cast<std::size_t>(round_up(group_weights_ * op.groups * static_cast<std::int64_t>(sizeof(T)), 64));
  }

  std::size_t workspace_bytes() const { return weight_bytes_ + part_bytes_ * static_cast<std::size_t>(parts_); }

  void run(const Args& args, ThreadPool& pool) const {
    const Tensor& dx = args.dx[0];
    if (!dx) return;
    T* const weights = static_cast<T*>(args.workspace);
    pool.split(c_.group_filters(), filters_at_once, [&](std::int64_t first, std::int64_t last) {
      for (int g = 0; g < c_.op.groups; ++g) {
        const T* const w = args.w[0].as<T>() + c_.weights() / c_.op.groups * g;
        transpose_weights(w, weights + g * group_weights_, first, last);
      }
    });
    if (has_gaps_ && !c_.add_dx && !fills()) {
      pool.each(std::int64_t{c_.x.n} * c_.x.c, 1, [&](std::int64_t plane) { zero_gaps(dx, plane); });
    }
    pool.run([&](int part) {
      void* const workspace =
          static_cast<std::byte*>(args.workspace) + weight_bytes_ + static_cast<std::size_t>(part) * part_bytes_;
      for (int g = 0; g < c_.op.groups; ++g) run_group(part, g, weights + g * group_weights_, args, workspace);
    });
  }

  /// The most roundings of a term of dx, and the most taps that reach an element of x.
  struct Depth {
    std::int64_t roundings, taps;
  };

  static Depth depth(const ConvUnit& c) {
    const auto [by_row, by_column] = taps_of_axes(c);
    std::size_t rows = 0, columns = 0;  // the most taps along each axis
    for (const auto& [h, taps] : by_row) rows = std::max(rows, taps.size());
    for (const auto& [w, taps] : by_column) columns = std::max(columns, taps.size());
    const auto most = static_cast<std::int64_t>(rows * columns);
    return {most == 0 ? 0 : ColumnProduct<T>::roundings(c.group_filters(), most), most};
  }

 private:
  /// The positions of x of one residue.
  struct Residue {
    int h, w;
    std::vector<int> taps;    // indices into a kernel's plane
    std::int64_t weights_at;  // start of its weights among a group's transposed weights
    std::int64_t weights_ld;  // elements from channel to channel
    ColumnProduct<T> product;
  };

  int rows(int h) const { return (c_.x.h - h - 1) / c_.op.stride.h + 1; }
  int cols(int w) const { return (c_.x.w - w - 1) / c_.op.stride.w + 1; }
  /// Whether there is one product, with zeros between its columns. This product then writes the zeros, too.
  bool fills() const { return has_gaps_ && residues_.size() == 1 && residues_[0].h == 0 && residues_[0].w == 0; }

  /// Weights of one group, transposed for every residue: to[weights_at + c * weights_ld + k * taps + t] =
  /// w[k][c][taps[t]] for k in [first, last). Takes some channels at a time, to write to few pages.
  void transpose_weights(const T* w, T* to, std::int64_t first, std::int64_t last) const {
    const std::int64_t kernel = std::int64_t{c_.op.kernel.h} * c_.op.kernel.w, channels = c_.group_channels();
    if (kernel == 1) {
      for (const Residue& residue : residues_) {  // one residue, or none where padding alone is read
        kernels_->transpose(to + first, residue.weights_ld, w + first * channels, channels, nullptr, 0, last - first,
                            channels);
      }
      return;
    }
    const auto target = [&](const Residue& residue, std::int64_t channel, std::int64_t k) {
      const auto taps = static_cast<std::int64_t>(residue.taps.size());
      return to + residue.weights_at + channel * residue.weights_ld + k * taps;
    };
    constexpr std::int64_t places = std::int64_t{11} * 11;
    alignas(line_bytes) T transposed[places * filters_at_once];  // [channel][place in the kernel][filter]
    if (kernel > places) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        for (const Residue& residue : residues_) {
          gather_taps(target(residue, channel, first), w + (first * channels + channel) * kernel, channels * kernel, 1,
                      last - first, residue.taps);
        }
      }
      return;
    }
    // 8 channels of 3x3 fit a first-level cache together with the weights that are read.
    const std::int64_t block = std::max<std::int64_t>(1, std::int64_t{8} * 9 / kernel);
    for (std::int64_t c0 = 0; c0 < channels; c0 += block) {
      const std::int64_t count = std::min(block, channels - c0), run = count * kernel;
      for (std::int64_t k = first; k < last; k += filters_at_once) {
        const std::int64_t filters = std::min(last - k, filters_at_once);
        const std::int64_t to_come = std::min(last - k - filters, filters_at_once);
        const T* const from = w + (k * channels + c0) * kernel;
        kernels_->transpose(transposed, filters_at_once, from, channels * kernel, nullptr, 0, filters, run);
        for (int c = 0; c < count; ++c) {
          // The next filters are in other pages, where a processor does not prefetch by itself.
          const IndexRange next = share_of(to_come, 1, c, static_cast<int>(count));
          for (std::int64_t f = next.first; f < next.last; ++f) prefetch(from + (filters + f) * channels * kernel, run);
          for (const Residue& residue : residues_) {
            const auto taps = static_cast<std::int64_t>(residue.taps.size());
            prefetch<true>(target(residue, c0 + c, k + filters), to_come * taps);
            sort_taps(target(residue, c0 + c, k), transposed + c * kernel * filters_at_once, filters, residue.taps);
          }
        }
      }
    }
  }

  void zero_gaps(const Tensor& dx, std::int64_t plane) const {
    T* const to = dx.as<T>() + plane / c_.x.c * dx.pitch + plane % c_.x.c * c_.x.plane();
    for (std::int64_t h = 0; h < c_.x.h; ++h) {
      T* const row = to + h * c_.x.w;
      if (!reached_rows_[static_cast<std::size_t>(h % c_.op.stride.h)]) {
        std::fill_n(row, c_.x.w, T{0});
        continue;
      }
      for (const std::int64_t first : gap_columns_) {
        for (std::int64_t w = first; w < c_.x.w; w += c_.op.stride.w) row[w] = T{0};
      }
    }
  }

  /// Every cache line of dx has elements of several residues. So all residues of some images are computed together,
  /// while their dx is in a cache.
  void run_group(int part, int group, const T* weights, const Args& args, void* workspace) const {
    constexpr std::int64_t most_bytes = 4 << 20;
    const std::int64_t image_bytes = c_.group_channels() * c_.x.plane() * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t images = residues_.size() == 1 ? c_.x.n : std::max<std::int64_t>(1, most_bytes / image_bytes);
    const Tensor& dx = args.dx[0];
    const Source<T> dy = gradient_source<T>(c_, args).further(group * c_.group_filters() * c_.y.plane());
    const bool fill = fills() && !c_.add_dx;
    for (std::int64_t image = 0; image < c_.x.n; image += images) {
      for (const Residue& residue : residues_) {
        T* const to =
            dx.as<T>() + group * c_.group_channels() * c_.x.plane() + std::int64_t{residue.h} * c_.x.w + residue.w;
        residue.product.run(
            part,
            {.a = weights + residue.weights_at,
             .lda = residue.weights_ld,
             .source = dy,
             .output = {to, dx.pitch, c_.x.plane(), cols(residue.w), std::int64_t{c_.op.stride.h} * c_.x.w,
                        c_.op.stride.w, fill ? c_.x.h : 0, c_.x.w},
             .epilogue = {.add = c_.add_dx},
             .non_temporal = wants_non_temporal<T>(c_.x),
             .images = {image, image + images}},
            workspace);
      }
    }
  }

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  std::vector<Residue> residues_;
  std::vector<bool> reached_rows_;  // whether rows are reached, by residue
  std::vector<int> gap_columns_;    // residues that no tap reaches
  bool has_gaps_ = false;           // whether there are elements of dx that no tap reaches
  std::int64_t group_weights_ = 0;
  std::size_t weight_bytes_ = 0, part_bytes_ = 0;
  int parts_ = 0;
};

}  // namespace lamina::eigen
