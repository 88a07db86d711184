#pragma once
// Columns of a convolution, which make it a plain matrix product, and their sum back into an image.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// columns[n, (c R + r) S + s, p, q] = x[n, c, p stride - pad + r dilation, q stride - pad + s dilation], 0 outside.
/// `columns` has x's images, x.c R S channels and y's plane; a group's channels are a range of its rows. An image of
/// the columns has fewer than 2^31 elements.
template <class T>
void im2col(Stream, const ConvGeometry&, View<const T> x, View<T> columns);

/// dx, or dx += with `adds`. Each pixel gathers the elements that im2col copied from it, in order of r and s.
template <class T>
void col2im(Stream, const ConvGeometry&, View<const T> columns, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
