#pragma once
// The gradient of a convolution's weights and bias: columns of x times dy, summed over every output position.
//
// Computed as dw^T[(c, r, s)][k] = sum over (n, p, q) of column[(c, r, s)][(n, p, q)] * dy[k][(n, p, q)]: rows of
// columns are the cheap side to copy and dy, the smaller matrix, the one to transpose. Threads share either the rows
// or, where dw is small, the positions; then each has partial sums of its own, added up in order of the threads.

#include <cstddef>
#include <cstdint>

#include "columns.h"
#include "gemm.h"
#include "pool.h"

namespace lamina::eigen {

template <class T>
class ParamsProduct {
 public:
  /// `columns` describes x of one group, `filters` the output channels of one group.
  ParamsProduct(Columns columns, std::int64_t filters, int groups, int threads, const MicroKernels<T>& kernels);

  std::size_t workspace_bytes() const;  ///< of all threads

  struct Operands {
    Source<T> x;           ///< of the first group
    std::int64_t x_group;  ///< elements from group to group of x
    Source<T> dy;          ///< of the first group; its mask is honoured
    T* dw;                 ///< null: not wanted
    T* db;                 ///< null: not wanted
    bool add;
  };
  void run(Pool&, const Operands&, void* workspace) const;

 private:
  struct Buffers {
    T* panels;
    T* strip;
    T* staged;
    Segment* segments;
  };
  struct Shared {
    T* partial;         // position parts x groups x rows x round_up(filters, lanes)
    double* bias_sums;  // position parts x groups x filters
  };
  Buffers carve(Carver&) const;
  Shared carve_shared(Carver&) const;
  void run_part(int part, const Operands&, int group, const Buffers&, T* partial, double* bias_sums) const;
  void pack_dy(const Source<T>& dy, ColumnRange, std::int64_t first_filter, std::int64_t filters, T* panels) const;
  void sum_bias(std::int64_t depth, std::int64_t filters, const T* panels, double* sums) const;
  void add_rows(const Operands&, int group, ColumnRange, Piece rows, std::int64_t first_filter, std::int64_t filters,
                const Buffers&, T* partial, bool add) const;
  void write(const Operands&, const Shared&, Piece filters) const;

  std::int64_t rows() const { return columns_.depth(); }
  std::int64_t ld() const { return round_up(filters_, kernels_->lanes); }

  const MicroKernels<T>* kernels_;
  Columns columns_;
  std::int64_t filters_;
  int groups_;
  Partition partition_;  // its columns are positions here
  std::int64_t block_depth_, block_filters_, staged_channels_;
  bool in_place_;  // rows of columns are runs of x itself
};

extern template class ParamsProduct<float>;
extern template class ParamsProduct<double>;

}  // namespace lamina::eigen
