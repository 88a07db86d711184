#pragma once
// Convolution as a product whose factors are gathered from the image on the way to shared memory.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Sizes of a block's tile of results: filters (or channels) by pixels (or weights).
enum class ConvTile { automatic, tile_128x128, tile_64x128, tile_64x64 };

// If there are few results, their sums are split into ranges, which different blocks compute, so that every
// multiprocessor of a large device has work. The ranges' sums are written to `partial`. A rule gives the number of
// ranges by the shapes alone; `splits` of 0 means that the rule decides. A batch has at most conv_implicit_gemm_most
// pixels, and a group at most as many weights. f64 has one tile, 64x64.

/// most pixels of a batch, or weights of a group: with one more tile they still fit in an int
constexpr std::int64_t conv_implicit_gemm_most = 2147483647 - 127;
/// most filters, or channels, of a group: limit of the grid's y
constexpr std::int64_t conv_implicit_gemm_most_results = 65535 * 64;
constexpr std::int64_t conv_implicit_gemm_most_groups = 65535;  ///< limit of the grid's z; many groups have one range

struct ConvImplicitGemm {
  static constexpr const char* name = "implicit_gemm";

  /// Bytes of `partial` for the launchers below; 0 for one range.
  template <class T>
  static std::size_t forward_bytes(const ConvGeometry&, const View<const T>& x, const View<T>& y, int splits = 0);
  template <class T>
  static std::size_t backward_data_bytes(const ConvGeometry&, const View<const T>& dy, const View<T>& dx,
                                         int splits = 0);
  template <class T>
  static std::size_t backward_weights_bytes(const ConvGeometry&, const View<const T>& x, const View<const T>& dy,
                                            int splits = 0);

  template <class T>
  static void forward(Stream, const ConvGeometry&, View<const T> x, const T* w, View<T> y, const ConvEnd<T>&,
                      T* partial, int splits = 0, ConvTile = ConvTile::automatic);

  /// dx, or dx += with `adds`. With a stride, the pixels whose rows and columns have the same remainders form one
  /// product, because they share the same taps of the filters. One launch computes up to 16 of these products (a stride
  /// of 4x4).
  template <class T>
  static void backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx, bool adds,
                            T* partial, int splits = 0, ConvTile = ConvTile::automatic);

  /// dw, or dw += with `adds`; dw is dy.c x x.c / groups x kernel_h x kernel_w, dense. Ranges are added in order.
  template <class T>
  static void backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw, T* partial,
                               bool adds, int splits = 0, ConvTile = ConvTile::automatic);
};

/// Cycles of the pass on a large device, as the model of docs/algorithms/implicit_gemm.md predicts for f32.
template <class T>
std::int64_t conv_implicit_gemm_forward_cycles(const ConvGeometry&, const View<const T>& x, const View<T>& y);
template <class T>
std::int64_t conv_implicit_gemm_data_cycles(const ConvGeometry&, const View<const T>& dy, const View<T>& dx);

/// Cycles of the weight gradient in f32, by the model that chooses tile and ranges (conv_schedule.h).
std::int64_t conv_implicit_gemm_weights_cycles(const ConvGeometry&, const View<const float>& x,
                                               const View<const float>& dy);

}  // namespace lamina::LAMINA_CUDA_SPACE
