#pragma once
// Winograd's filtering for the weight gradient: the filter's gradient over all tiles of a batch.

#include <cstddef>
#include <cstdint>

#include "lib/backends/eigen/runtime/pool.h"
#include "tiles.h"

namespace lamina::eigen {

/// One product per position: (points of dy)^T [outputs][tiles] * points of x [tiles][inputs]. Holds no memory. Threads
/// share the transforms by spans and the products by positions.
///
/// There are two orders. Either blocks of tiles are summed up, for one block of outputs after the other. Or one block
/// has all tiles, and for each block of inputs the points of x stay while the blocks of outputs are processed. The
/// order that transforms fewer channels is taken.
template <class T>
class WinogradWeightGradient {
 public:
  WinogradWeightGradient(const WinogradExtents&, int tile, int threads, const MicroKernels<T>& kernels);
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  struct Operands {
    Planes x, dy;  ///< masked by the mask of dy
    T* dw;         ///< null: not wanted
    T* db;         ///< null: not wanted
    bool add;      ///< whether dw and db are added to
  };
  void run(ThreadPool&, const Operands&, void* workspace) const;

 private:
  struct Buffers {
    T *pixels, *x_points, *dy_points, *sums;
    double* bias_sums;
    Panel<T>* list;
  };
  struct Cut {
    IndexRange spans, inputs, outputs;
  };
  Buffers allocate(ScratchAllocator&) const;
  ChannelPanels panels_of(IndexRange inputs) const;
  template <class E>
  void transform_x(IndexRange spans, std::int64_t tile, IndexRange inputs, const Source<E>&, T* pixels,
                   const Buffers&) const;
  template <class E>
  void transform_dy(IndexRange spans, std::int64_t tile, IndexRange outputs, const Source<E>&, T* pixels,
                    double* bias_sums, const Buffers&) const;
  void run_group(ThreadPool&, const Operands&, const Buffers&) const;
  void add_block(ThreadPool&, const Cut&, const Operands&, const Buffers&) const;
  void write(ThreadPool&, const Cut&, const Operands&, const Buffers&) const;

  WinogradExtents e_;
  const MicroKernels<T>* kernels_;
  const WinogradTransforms<T>* transforms_;
  TileSpans spans_;
  int threads_, positions_;
  std::int64_t block_spans_, block_inputs_, block_outputs_;
  std::int64_t width_;  // columns of a panel
  std::int64_t pixels_size_, panel_stride_, x_position_, dy_ld_, dy_position_, sums_ld_, sums_position_;
  std::size_t workspace_bytes_;
};

extern template class WinogradWeightGradient<float>;
extern template class WinogradWeightGradient<double>;

}  // namespace lamina::eigen
