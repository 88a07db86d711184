#pragma once
// Two products whose columns take turns in the output: residues of a data gradient that are side by side in dx.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lib/backends/eigen/gemm/column_product.h"

namespace lamina::eigen {

/// The left product's sums of some columns are kept in a buffer. Those of the right product, of the same columns, are
/// then written together with them, by whole vectors. Holds no memory.
template <class T>
class InterleavedProduct {
 public:
  /// Both of as many columns and rows.
  InterleavedProduct(Columns left, Columns right, std::int64_t rows, int threads, const MicroKernels<T>& kernels)
      : left_(std::move(left), rows, threads, kernels, true), right_(std::move(right), rows, threads, kernels, true) {
    constexpr std::int64_t most_sums_bytes = 256 * 1024;  // together with the columns in a second-level cache
    const std::int64_t fit = most_sums_bytes / static_cast<std::int64_t>(sizeof(T)) / right_.tallest();
    const std::int64_t width = kernels.width(), least = 2 * width;
    block_ = std::max(least, std::min({fit / width * width, left_.block_columns(), right_.block_columns()}));
    block_ = round_up(block_, width);
  }

  int parts() const { return right_.parts(); }
  std::size_t workspace_bytes() const {  ///< of one part
    ScratchAllocator counter;
    counter.take<T>(right_.tallest() * block_);
    return counter.used_bytes() + std::max(left_.workspace_bytes(), right_.workspace_bytes());
  }

  /// Computes this part's share, with what the left product multiplies and what the right one does; the output is the
  /// left columns', and its step 2.
  void run(int part, const T* left_a, std::int64_t left_lda, typename ColumnProduct<T>::Operands right,
           void* workspace) const {
    if (part >= parts()) return;
    ScratchAllocator scratch(workspace);
    T* const sums = scratch.take<T>(right_.tallest() * block_);
    void* const rest = static_cast<std::byte*>(workspace) + scratch.used_bytes();
    right.output.left = sums;
    right.output.left_ld = block_;
    const IndexRange own = right_.columns(part);
    const std::int64_t first = std::max(own.first, right.images.first * right_.grid());
    const std::int64_t last = std::min(own.last, right.images.last * right_.grid());
    for (std::int64_t column = first; column < last; column += block_) {
      right.columns = {column, std::min(column + block_, last)};
      left_.run(part,
                {.a = left_a,
                 .lda = left_lda,
                 .source = right.source,
                 .output = {.data = sums,
                            .pitch = 0,
                            .plane = block_,
                            .row_length = 0,
                            .row_pitch = 0,
                            .step = 1,
                            .row_major = true},
                 .columns = right.columns},
                rest);
      right_.run(part, right, rest);
    }
  }

 private:
  ColumnProduct<T> left_, right_;
  std::int64_t block_;  // of columns
};

}  // namespace lamina::eigen
