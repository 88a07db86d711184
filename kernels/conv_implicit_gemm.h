#pragma once
// Convolution as a product whose factors are gathered from the image while they are brought to shared memory.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Sizes of a block's tile of results, filters (or channels) by pixels (or weights).
enum class ConvTile { automatic, tile_128x128, tile_64x128, tile_64x64 };

/// y = bias + the sum, cut off at 0 with `relu`; a null bias is none. f64 has one tile, 64x64, whatever is asked for.
/// An image batch has fewer than 2^31 pixels.
template <class T>
void conv_implicit_gemm_forward(Stream, const ConvGeometry&, View<const T> x, const T* w, const T* bias, View<T> y,
                                bool relu, ConvTile = ConvTile::automatic);

/// dx, or dx += with `adds`. With a stride, the pixels whose rows and columns leave the same remainder are one product:
/// they meet the same taps of the filters, and no other.
template <class T>
void conv_implicit_gemm_backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx,
                                      bool adds, ConvTile = ConvTile::automatic);

/// The weight gradient's sums run over all pixels of all images, which are cut into this many ranges, so that blocks
/// enough are at work; the shapes alone decide. `splits` of 0 stands for that rule.
template <class T>
int conv_implicit_gemm_splits(const ConvGeometry&, const View<const T>& x, const View<const T>& dy);

/// What backward_weights needs of `partial`: nothing for one range.
template <class T>
std::size_t conv_implicit_gemm_partial_bytes(const ConvGeometry&, const View<const T>& x, const View<const T>& dy,
                                             int splits = 0);

/// dw, or dw += with `adds`; dw is dy.c x x.c / groups x kernel_h x kernel_w, dense. Ranges are added in order.
template <class T>
void conv_implicit_gemm_backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw,
                                         T* partial, bool adds, int splits = 0, ConvTile = ConvTile::automatic);

}  // namespace lamina::LAMINA_CUDA_SPACE
