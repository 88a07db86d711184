#pragma once
// The gradient of a convolution's weights and bias: columns of x times dy, summed over every output position.
//
// One side of the product is read as rows of positions, and its other side is transposed and packed. As a rule the rows
// are the columns of x, which are cheap to copy, and the transposed side is dy, the smaller matrix: dw^T[(c, r, s)][k].
// Where windows are 1x1 and x has fewer channels than dy, the sides change places. Threads share the rows or, where dw
// is small, the positions. A thread that has a share of the positions has partial sums of its own, and these are added
// up in the order of the threads.

#include <cstddef>
#include <cstdint>
#include <span>

#include "conv.h"
#include "lib/backends/eigen/gemm/columns.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/runtime/pool.h"

namespace lamina::eigen {

/// How the positions that a sum runs over are divided: among threads, and into the blocks of a product.
struct PositionBlocks {
  std::int64_t count, grid;  ///< positions of all images, and of one
  bool in_place;             ///< rows are runs of memory as it is: a block has whole images, or is within one
  Partition partition;       ///< its columns are positions here
  std::int64_t depth = 0;    ///< most positions of a block

  IndexRange of(int part) const;
  ColumnRange next(std::int64_t first, std::int64_t last) const;  ///< the block that starts here
  /// The roundings of a term: its own, one for each later term of its block, one for each later block, and one for each
  /// partial sum.
  std::int64_t roundings() const;

 private:
  std::int64_t roundings(IndexRange positions) const;
};

/// `x_columns` are the columns of one group of x.
template <class T>
PositionBlocks position_blocks(const ConvUnit&, const Columns& x_columns, int threads, int tile_rows);

template <class T>
class WeightGradientProduct {
 public:
  WeightGradientProduct(const ConvUnit&, Columns x_columns, int threads, const MicroKernels<T>& kernels);

  std::size_t workspace_bytes() const;  ///< workspace of all threads
  using Operands = WeightGradientOperands<T>;
  void run(ThreadPool&, const Operands&, void* workspace) const;

 private:
  struct Buffers {
    T* panels;
    T* row_tile;
    T* staged;
    T* right;
    Segment* segments;
    Panel<T>* list;
  };
  struct Shared {
    T* partial;         // position parts x groups x rows x ld
    double* bias_sums;  // position parts x groups x filters
  };
  /// The work of one part: a group, and the rows and positions of it.
  struct Share {
    Source<T> left, right;
    IndexRange rows, positions;
    T* partial;
    double* bias_sums;  // null: not wanted of this part
  };
  Buffers allocate(ScratchAllocator&) const;
  Shared allocate_shared(ScratchAllocator&) const;
  Share share(int part, int group, const Operands&, const Shared&) const;
  void run_part(const Share&, const Buffers&) const;
  std::span<const Panel<T>> list_right(const Share&, std::int64_t first, std::int64_t count, const Buffers&) const;
  void pack_right(const Share&, ColumnRange, std::int64_t first, std::span<const Panel<T>>, const Buffers&) const;
  T* copy_right(const Share&, ColumnRange, std::int64_t first, std::int64_t count, std::int64_t ld,
                const Buffers&) const;
  void add_rows(const Share&, ColumnRange, std::span<const Panel<T>>, const Buffers&) const;
  void sum_panels(std::int64_t depth, std::span<const Panel<T>>, double* sums) const;
  void sum_rows(const Share&, ColumnRange) const;
  void write(const Operands&, const Shared&, IndexRange filters) const;
  void write_transposed(const Operands&, const Shared&, std::int64_t k, std::int64_t count) const;
  void write_straight(const Operands&, const Shared&, std::int64_t k, std::int64_t count) const;

  std::int64_t rows() const { return left_.depth(); }
  std::int64_t ld() const { return round_up(right_, kernels_->lanes); }
  std::int64_t filters() const { return swapped_ ? rows() : right_; }

  const MicroKernels<T>* kernels_;
  PositionBlocks blocks_;
  bool swapped_;                  // the rows are dy, the panels x
  Columns left_, right_columns_;  // right_columns_: of x, where the sides are swapped
  std::int64_t right_;            // channels of the transposed side, in one group
  int groups_;
  std::int64_t x_group_, dy_group_;  // elements from group to group
  std::int64_t block_right_, staged_channels_;
};

extern template class WeightGradientProduct<float>;
extern template class WeightGradientProduct<double>;

}  // namespace lamina::eigen
