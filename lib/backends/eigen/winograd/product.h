#pragma once
// Winograd's filtering: a forward pass and, with flipped filters, a data gradient.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/backends/eigen/runtime/pool.h"
#include "tiles.h"

namespace lamina::eigen {

/// One product per position: points [tiles][inputs] * filters [inputs][outputs]. Holds no memory.
///
/// For each block of tiles, patches are transformed into the block's points. Then for each chunk of outputs, filters
/// are transformed and multiplied, and the products transformed. If outputs need not be divided, each thread has
/// separate blocks and waits for the others only at the end. Otherwise threads share each block's patches and then its
/// outputs, its tiles, or both. Filters are transformed before all blocks if that takes little memory.
template <class T>
class WinogradProduct {
 public:
  /// `flipped`: filters are [inputs][outputs][taps][taps] and are rotated by 180 degrees.
  WinogradProduct(const WinogradExtents&, int tile, bool flipped, int threads, const MicroKernels<T>& kernels);

  const WinogradExtents& extents() const { return e_; }
  std::int64_t tiles() const { return spans_.tiles(0, spans_.count()); }    ///< tiles of the batch
  std::int64_t prepared_count() const { return e_.groups * group_size(); }  ///< elements written by prepare()
  void prepare(ThreadPool&, const T* w, const T* scale, T* to) const;

  struct Operands {
    const T* w;         ///< filters of all groups, if `prepared` is null
    const T* prepared;  ///< or: filters made by prepare() with the epilogue's scale
    Planes source, to;
    Epilogue<T> epilogue;  ///< its scale multiplies the filters
  };
  std::size_t workspace_bytes(bool prepared) const;
  void run(ThreadPool&, const Operands&, void* workspace) const;

 private:
  struct Buffers {  // one of each per thread; threads share the points of a common block
    T *points, *pixels, *filters, *products;
  };
  struct Group {
    int index;
    const Operands* operands;
  };
  std::int64_t group_size() const { return static_cast<std::int64_t>(chunks_.size()) * chunk_size_; }
  Buffers allocate(ScratchAllocator&, bool prepared) const;
  ChannelPanels panels_of(IndexRange outputs) const;
  void transform_filters(const T* w, const T* scale, int group, IndexRange outputs, T* to) const;
  void transform_inputs(IndexRange block, IndexRange spans, const Group&, T* pixels, T* points) const;
  void transform_outputs(IndexRange spans, IndexRange outputs, const Group&, T* pixels, const T* products) const;
  void run_apart(int part, const Operands&, Buffers) const;
  void run_together(ThreadPool&, const Operands&, const Buffers&) const;
  void multiply_part(int part, IndexRange block, const Group&, const Buffers&) const;

  WinogradExtents e_;
  bool flipped_;
  const MicroKernels<T>* kernels_;
  const WinogradTransforms<T>* transforms_;
  TileSpans spans_;
  int threads_, positions_;
  std::int64_t block_spans_;
  bool apart_;
  bool filters_first_;              // filters are transformed before the first block
  Partition partition_;             // partition of a block
  std::vector<IndexRange> chunks_;  // outputs; each row part has the same number of chunks, some perhaps empty
  std::int64_t width_;              // columns of a panel
  std::int64_t panel_stride_, filter_position_, chunk_size_;
  std::int64_t point_ld_, point_position_, product_ld_, product_position_, pixels_size_;
};

extern template class WinogradProduct<float>;
extern template class WinogradProduct<double>;

}  // namespace lamina::eigen
