#pragma once
// Winograd's filtering as a forward pass has it and, with flipped filters, a data gradient.

#include <cstddef>
#include <cstdint>

#include "winograd.h"

namespace lamina::eigen {

/// One product per position: points [tiles][inputs] * filters [inputs][outputs]. Holds no memory.
template <class T>
class WinogradProduct {
 public:
  /// `flipped`: filters lie as [inputs][outputs][3][3] and are turned by half a turn.
  WinogradProduct(const WinogradExtents&, int tile, bool flipped, int threads, const MicroKernels<T>& kernels);

  const WinogradExtents& extents() const { return e_; }
  std::int64_t filter_count() const { return filter_stride_ * e_.groups; }  ///< elements, transformed
  std::int64_t filter_stride() const { return filter_stride_; }             ///< from group to group
  std::size_t workspace_bytes() const { return workspace_bytes_; }          ///< of one part
  int parts() const { return partition_.parts(); }

  /// Filters come in bundles of as many outputs as a vector has lanes.
  std::int64_t filter_bundles() const { return divide_up(e_.outputs, kernels_->lanes) * e_.groups; }
  /// Transforms bundles [first, last) of all groups' filters.
  void transform_filters(const T* w, T* to, std::int64_t first, std::int64_t last) const;

  struct Operands {
    const T* filters;  ///< transformed, of this group
    Source<T> source;
    T* to;
    std::int64_t pitch;
    const T* bias;
    bool add, relu;
  };
  /// Computes this part's share; parts may run at the same time, each with a workspace of its own.
  void run(int part, const Operands&, void* workspace) const;

 private:
  struct Buffers {
    T *pixels, *points, *products;
  };
  Buffers carve(Carver&) const;
  void transform_inputs(Piece strips, const Operands&, const Buffers&) const;
  void transform_outputs(Piece strips, Piece outputs, const Operands&, const Buffers&) const;

  WinogradExtents e_;
  bool flipped_;
  const MicroKernels<T>* kernels_;
  const WinogradTransforms<T>* transforms_;
  Strips strips_;
  int positions_;
  std::int64_t panel_stride_, filter_position_, filter_stride_;  // of transformed filters
  Partition partition_;
  std::int64_t block_strips_, block_outputs_;
  std::int64_t point_ld_, point_position_, product_ld_, product_position_;
  std::size_t workspace_bytes_;
};

extern template class WinogradProduct<float>;
extern template class WinogradProduct<double>;

}  // namespace lamina::eigen
