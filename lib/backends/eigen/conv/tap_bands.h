#pragma once
// Bands of rows of planes, copied into the first-level cache with a border of zeros and sorted by residues modulo the
// stride. In such a copy every tap is an offset, for any pad, stride and dilation.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lib/backends/eigen/gemm/columns.h"

namespace lamina::eigen {

/// Rows of a grid of positions, and the rows that the taps read for them.
struct Band {
  std::int64_t first = 0, rows = 0;
  std::int64_t plane = 0;               ///< elements of the copy of a plane
  std::vector<std::int64_t> offsets{};  ///< offsets into the copies: for group 0 the taps of all planes, then for
                                        ///< group 1, ...
  std::vector<CopiedRows> parts{};      ///< copied rows of a plane
  bool clears = false;                  ///< whether the copies of the band before must be cleared first
};

class TapBands {
 public:
  struct Geometry {
    int planes;      ///< planes that a sum reads
    int h, w;        ///< extents of a plane
    int rows, cols;  ///< extents of the grid
    Size step;       ///< step of the grid along planes
    std::vector<Tap> taps;
    /// The groups of taps: the first tap of each, then the number of taps.
    std::vector<std::int64_t> groups{0, static_cast<std::int64_t>(taps.size())};
  };
  /// Bands of at most `most_rows` rows. Copies have rows of whole vectors of `lanes` elements.
  TapBands(const Geometry& g, int lanes, std::size_t element_bytes, std::int64_t most_rows)
      : plane_(std::int64_t{g.h} * g.w), row_stride_(std::int64_t{g.step.h} * g.w), step_(g.step.w) {
    int first_h = 0, first_w = 0, reach_h = 0, reach_w = 0;
    if (!g.taps.empty()) {
      first_h = std::ranges::min(g.taps, {}, &Tap::dh).dh;
      first_w = std::ranges::min(g.taps, {}, &Tap::dw).dw;
      reach_h = (std::ranges::max(g.taps, {}, &Tap::dh).dh - first_h) / g.step.h;
      reach_w = (std::ranges::max(g.taps, {}, &Tap::dw).dw - first_w) / g.step.w;
    }
    std::map<std::pair<int, int>, std::int64_t> residues;  // residues (modulo the step) that taps read; places
    for (const Tap& tap : g.taps) residues.try_emplace({(tap.dh - first_h) % g.step.h, (tap.dw - first_w) % g.step.w});
    std::int64_t places = 0;
    for (auto& [residue, place] : residues) place = places++;

    ld_ = round_up(std::int64_t{g.cols} + reach_w, lanes);
    const auto bytes = [&](std::int64_t rows) {
      return g.planes * places * (rows + reach_h) * ld_ * static_cast<std::int64_t>(element_bytes);
    };
    constexpr std::int64_t at_once = 8;  // rows of sums in registers
    std::int64_t height = std::min<std::int64_t>(g.rows, most_rows);
    if (bytes(height) > copied_bytes) {
      const std::int64_t fit = (copied_bytes - bytes(0)) / (bytes(1) - bytes(0)) / at_once * at_once;
      height = std::min(height, std::max(fit, at_once));
    }
    for (int first = 0; first < g.rows; first += static_cast<int>(height)) {
      Band band{.first = first, .rows = std::min<std::int64_t>(height, g.rows - first)};
      band.clears = first == 0 || band.rows < height;
      const std::int64_t copy = (band.rows + reach_h) * ld_;  // elements of one residue
      band.plane = places * copy;
      for (std::size_t group = 0; group + 1 < g.groups.size(); ++group) {
        for (int plane = 0; plane < g.planes; ++plane) {
          for (std::int64_t t = g.groups[group]; t < g.groups[group + 1]; ++t) {
            const int h = g.taps[static_cast<std::size_t>(t)].dh - first_h;
            const int w = g.taps[static_cast<std::size_t>(t)].dw - first_w;
            band.offsets.push_back(plane * band.plane + residues.at({h % g.step.h, w % g.step.w}) * copy +
                                   h / g.step.h * ld_ + w / g.step.w);
          }
        }
      }
      for (const auto& [residue, place] : residues) {
        const int down = first * g.step.h + first_h + residue.first, right = first_w + residue.second;
        const Range rows = range_within(static_cast<int>(band.rows) + reach_h, g.step.h, down, 0, g.h);
        const Range cols = range_within(g.cols + reach_w, g.step.w, right, 0, g.w);
        band.clears |= rows.last - rows.first < band.rows + reach_h;
        if (rows.first == rows.last || cols.first == cols.last) continue;
        band.parts.push_back({place * copy + rows.first * ld_ + cols.first,
                              (std::int64_t{rows.first} * g.step.h + down) * g.w + cols.first * g.step.w + right,
                              rows.last - rows.first, cols.last - cols.first});
      }
      bands_.push_back(std::move(band));
    }
  }

  static constexpr std::int64_t copied_bytes = 16 * 1024;  ///< planes that are copied at once: half an L1 cache

  std::size_t count() const { return bands_.size(); }
  const Band& operator[](std::size_t band) const { return bands_[band]; }
  const Band& largest() const { return bands_.front(); }
  std::int64_t ld() const { return ld_; }  ///< elements from row to row of the copies

  /// Copies the rows that a band reads, for `planes` planes from source.data on. `to` must be zeros before the first
  /// call, and only these calls may write to it.
  template <class T>
  void copy(std::size_t band, const Source<T>& source, std::int64_t planes, const MicroKernels<T>& kernels,
            T* to) const {
    const Band& here = bands_[band];
    if (count() > 1 && here.clears) std::fill_n(to, planes * here.plane, T{0});
    kernels.taps.copy({.to = to,
                       .to_plane = here.plane,
                       .ld = ld_,
                       .from = source.data,
                       .mask = source.mask,
                       .from_plane = plane_,
                       .row_stride = row_stride_,
                       .step = step_,
                       .planes = planes,
                       .parts = here.parts.data(),
                       .count = static_cast<std::int64_t>(here.parts.size())});
  }

 private:
  std::vector<Band> bands_;
  std::int64_t ld_, plane_, row_stride_, step_;
};

}  // namespace lamina::eigen
