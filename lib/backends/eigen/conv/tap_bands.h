#pragma once
// Bands of rows of planes, copied into the first-level cache with a border of zeros and sorted by residues modulo the
// stride. There every tap is an offset, for any pad, stride and dilation.

#include <algorithm>
#include <cstdint>
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
  bool clears = false;                  ///< whether the copies must be cleared of the band before
};

class TapBands {
 public:
  struct Geometry {
    int planes;      ///< planes that a sum reads
    int h, w;        ///< extents of a plane
    int rows, cols;  ///< extents of the grid
    Size step;       ///< step of the grid along planes
    std::vector<Tap> taps;
    std::vector<std::int64_t> groups;  ///< groups of taps: the first tap of each, then the number of taps
  };
  /// At most `most_rows` rows each. Copies have rows of whole vectors of `lanes` elements.
  TapBands(const Geometry&, int lanes, std::size_t element_bytes, std::int64_t most_rows);

  static constexpr std::int64_t copied_bytes = 16 * 1024;  ///< bytes of planes that are copied at once: half a cache

  std::size_t count() const { return bands_.size(); }
  const Band& operator[](std::size_t band) const { return bands_[band]; }
  const Band& largest() const { return bands_.front(); }
  std::int64_t ld() const { return ld_; }  ///< elements from row to row of the copies

  /// Copies the rows that a band reads of `planes` planes from source.data on. `to` is zeros before the first call, and
  /// only these calls write to it.
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
