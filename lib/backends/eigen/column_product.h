#pragma once
// Weights times the matrix of columns: the product behind a convolution's forward pass and its data gradient. Columns
// that are an image as it lies, of whole vectors (1x1 with stride 1), are read in place; others are packed.

#include <cstddef>
#include <cstdint>

#include "columns.h"
#include "gemm.h"

namespace lamina::eigen {

/// Of one row of a in a block: eight rows fill a quarter of a first-level cache. The depth of a block follows from it,
/// and what a product promises of its error.
constexpr std::int64_t column_strip_bytes = 1536;

/// Where column (n, p, q) of row m goes: data[n * pitch + m * plane + p * row_pitch + q * step], q below row_length.
template <class T>
struct GridOutput {
  T* data;
  std::int64_t pitch, plane, row_length, row_pitch, step;
};

/// One product a * columns, cut into blocks and for threads. Holds no memory.
template <class T>
class ColumnProduct {
 public:
  ColumnProduct(Columns columns, std::int64_t rows, int threads, const MicroKernels<T>& kernels);

  const Columns& columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }  ///< of one part
  int parts() const { return partition_.parts(); }

  struct Operands {
    const T* a;  ///< rows x columns.depth()
    Source<T> source;
    GridOutput<T> output;
    const T* scale = nullptr;  ///< of the sums, one per row
    const T* bias;
    bool add, relu;
  };
  /// Computes this part's share; parts may run at the same time, each with a workspace of its own.
  void run(int part, const Operands&, void* workspace) const;

 private:
  struct Buffers {
    T* panels;
    T* staged;
    T* sums;
    Segment* segments;
  };
  Buffers carve(Carver&) const;
  /// The block of columns that starts here, of those before `last`; in place it ends with its image.
  ColumnRange range_from(std::int64_t first, std::int64_t last) const;
  void pack(ColumnRange, const Operands&, std::int64_t first, std::int64_t depth, const Buffers&,
            std::int64_t segments) const;

  const MicroKernels<T>* kernels_;
  Columns columns_;
  std::int64_t rows_;
  Partition partition_;
  bool in_place_;  // columns are runs of memory as it is
  std::int64_t block_depth_, block_columns_;
  std::int64_t block_channels_;  // that a block of this depth can touch
  std::size_t workspace_bytes_;
};

extern template class ColumnProduct<float>;
extern template class ColumnProduct<double>;

}  // namespace lamina::eigen
