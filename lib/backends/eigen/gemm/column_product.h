#pragma once
// Weights times the matrix of columns: the product of a convolution's forward pass and its data gradient. Columns that
// are the image itself (1x1 with stride 1) are read in place, up to the last whole vector; others are packed. Where all
// images together leave half a vector of columns or less, these are packed along k.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "columns.h"
#include "gemm.h"

namespace lamina::eigen {

/// Place of the result: column (n, p, q) of row m is at data[n * pitch + m * plane + p * row_pitch + q * step], with q
/// below row_length. If h and w are given, a row's plane is h x w and its other elements are set to 0; `add` must be
/// false then.
template <class T>
struct GridOutput {
  T* data;
  std::int64_t pitch, plane, row_length, row_pitch, step;
  std::int64_t h = 0, w = 0;
};

/// One product a * columns, in blocks and partitioned for threads. Holds no memory.
template <class T>
class ColumnProduct {
 public:
  ColumnProduct(Columns columns, std::int64_t rows, int threads, const MicroKernels<T>& kernels);

  /// The most roundings of a term in a sum over `channels` of `taps` terms each: one for the term and each later term
  /// of its block, and one for each later block.
  static std::int64_t roundings(std::int64_t channels, std::int64_t taps);

  std::int64_t depth() const { return depth_; }
  std::int64_t rows() const { return rows_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }  ///< workspace of one part
  int parts() const { return partition_.parts(); }

  struct Operands {
    const T* a;        ///< rows() x depth()
    std::int64_t lda;  ///< elements from row to row
    Source<T> source;
    GridOutput<T> output;
    Epilogue<T> epilogue = {};
    bool non_temporal = false;                              ///< see PlaceOfC::non_temporal
    IndexRange images{0, std::numeric_limits<int>::max()};  ///< images whose columns are wanted
  };
  /// Computes this part's share. Parts may run at the same time, each with a separate workspace.
  void run(int part, const Operands&, void* workspace) const;

 private:
  /// The columns of every image that are read in place, or those that are packed.
  struct Section {
    Columns columns;
    std::int64_t offset;  // first column in an image
    bool in_place;        // panels are columns of the source itself; offset is 0
    bool few = false;     // half a vector of columns or less, packed along k
    std::int64_t block_columns = 0;
  };
  struct Buffers {
    T* panels;
    T* staged;             // copy of some channels
    std::int64_t* starts;  // start of each row (channel, tap) in `staged`
    T* sums;
    Segment* segments;
    Panel<T>* lists[2];  // panels of a range, and of the next one
  };
  struct Work {  // the work of one part
    const Operands& operands;
    GridOutput<T> output;  // output of these rows
    int column_part;
    IndexRange rows;
    Buffers buffers;
  };

  Buffers allocate(ScratchAllocator&) const;
  std::int64_t tallest() const;  // rows of the largest part
  std::int64_t block_columns(const Section&) const;
  std::int64_t staged_channels(const Section&) const;
  /// Elements from panel to panel. Packing may write up to a row after a panel.
  std::int64_t panel_stride() const { return (block_depth_ + 1) * kernels_->width(); }
  void run(const Section&, const Work&) const;
  void run_few(const Section&, const Work&, IndexRange share) const;
  template <class Store>
  void multiply_range(const Section&, ColumnRange, std::span<const Panel<T>> next, const Work&, const Block<T>& shared,
                      const Store&) const;
  ColumnRange range_from(const Section&, std::int64_t first, std::int64_t last) const;
  std::span<const Panel<T>> list_panels(const Section&, ColumnRange, const Work&, Panel<T>* list) const;
  PanelWidths widths_of(ColumnRange, std::span<const Panel<T>>) const;
  void pack(const Section&, ColumnRange, std::span<const Panel<T>>, const Work&, std::int64_t first, std::int64_t depth,
            std::int64_t segments) const;
  void pack_staged(const Section&, ColumnRange, const Work&, std::int64_t first, std::int64_t depth,
                   std::int64_t segments) const;

  const MicroKernels<T>* kernels_;
  std::int64_t depth_, rows_;
  std::int64_t grain_;  // columns of which parts are multiples
  Partition partition_;
  std::vector<Section> sections_;
  std::int64_t block_depth_;
  std::size_t workspace_bytes_;
};

extern template class ColumnProduct<float>;
extern template class ColumnProduct<double>;

}  // namespace lamina::eigen
