#pragma once
// Eigen's own matrix product, on one thread and in memory that the caller gives.

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "lib/core/units/scratch_allocator.h"

namespace lamina::eigen {

/// A row-major matrix in memory.
template <class T>
struct EigenMatrix {
  T* data;
  std::int64_t ld;  ///< elements from row to row
};

/// Products by Eigen's kernels, packing and block sizes, up to the given extents. Eigen's public product allocates its
/// packed blocks in every call; here the caller gives the memory, so that a pass allocates nothing.
template <class T>
class EigenProduct {
 public:
  EigenProduct(std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : rows_(rows), columns_(columns), depth_(depth) {}

  /// Whether a and b are read transposed.
  enum class Reads { straight, a_transposed, b_transposed };

  /// Takes the memory for packed blocks.
  void allocate(ScratchAllocator& scratch) {
    const Blocking blocking(rows_, columns_, depth_);
    packed_a_ = scratch.take<T>(blocking.mc() * blocking.kc());
    packed_b_ = scratch.take<T>(blocking.nc() * blocking.kc());
  }

  /// c = a * b, or c += a * b. c is rows x columns; no extent is larger than the constructor's.
  template <Reads reads>
  void run(std::int64_t rows, std::int64_t columns, std::int64_t depth, EigenMatrix<const T> a, EigenMatrix<const T> b,
           EigenMatrix<T> c, bool add) const {
    constexpr int a_order = reads == Reads::a_transposed ? Eigen::ColMajor : Eigen::RowMajor;
    constexpr int b_order = reads == Reads::b_transposed ? Eigen::ColMajor : Eigen::RowMajor;
    if (!add)
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(c.data + i * c.ld, columns, T{0});
    Blocking blocking(rows_, columns_, depth_);
    blocking.give(packed_a_, packed_b_);
    Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, a_order, false, T, b_order, false, Eigen::RowMajor,
                                                   1>::run(rows, columns, depth, a.data, a.ld, b.data, b.ld, c.data, 1,
                                                           c.ld, T{1}, blocking, nullptr);
  }

 private:
  /// The block sizes of Eigen's row-major product on one thread. That product computes the transpose.
  struct Blocking : Eigen::internal::level3_blocking<T, T> {
    Blocking(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
      this->m_mc = columns;
      this->m_nc = rows;
      this->m_kc = depth;
      Eigen::internal::computeProductBlockingSizes<T, T>(this->m_kc, this->m_mc, this->m_nc, Eigen::Index{1});
    }
    void give(T* packed_a, T* packed_b) {
      this->m_blockA = packed_a;
      this->m_blockB = packed_b;
    }
  };

  std::int64_t rows_, columns_, depth_;
  T *packed_a_ = nullptr, *packed_b_ = nullptr;
};

}  // namespace lamina::eigen
