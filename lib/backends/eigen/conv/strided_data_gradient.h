#pragma once
// The data gradient as products that gather, one for each residue of the positions of x modulo the stride: weights
// times columns of dy, for the taps that reach these positions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/column_product.h"

namespace lamina::eigen {

template <class T>
class StridedDataGradient {
 public:
  StridedDataGradient(const ConvUnit&, int threads, const MicroKernels<T>& kernels);
  std::size_t workspace_bytes() const { return weight_bytes_ + part_bytes_ * static_cast<std::size_t>(parts_); }
  void run(const Args&, ThreadPool&) const;

  /// The most roundings of a term of dx, and the most taps that reach an element of x.
  struct Depth {
    std::int64_t roundings, taps;
  };
  static Depth depth(const ConvUnit&);

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
  /// Whether there is one product, with zeros between its columns. It then writes these, too.
  bool fills() const { return has_gaps_ && residues_.size() == 1 && residues_[0].h == 0 && residues_[0].w == 0; }
  void transpose_weights(const T* w, T* to, std::int64_t first, std::int64_t last) const;
  void zero_gaps(const Tensor& dx, std::int64_t first_plane, std::int64_t last_plane) const;
  void run_group(int part, int group, const T* weights, const Args&, void* workspace) const;

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  std::vector<Residue> residues_;
  std::vector<bool> reached_rows_;  // whether rows are reached, by residue
  std::vector<int> gap_columns_;    // residues that no tap reaches
  bool has_gaps_ = false;           // elements of dx that no tap reaches
  std::int64_t group_weights_ = 0;
  std::size_t weight_bytes_ = 0, part_bytes_ = 0;
  int parts_ = 0;
};

extern template class StridedDataGradient<float>;
extern template class StridedDataGradient<double>;

}  // namespace lamina::eigen
