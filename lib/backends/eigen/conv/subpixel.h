#pragma once
// The data gradient where x has few channels and the stride is wide, as in AlexNet's first layer: a sub-pixel
// convolution, one product for the pixels of all residues modulo the stride.
//
// With h + pad = S i + a and r = a + S u (likewise along w, with j, b, s and v):
//   dx[c][h][w] = sums[(c, a, b)][(i, j)] = sum over k, u, v of w[k][c][r][s] * dy[k][i - u][j - v]
// Rows (c, a, b) fill the register tiles that channels alone would leave empty; all of them read the same columns. Taps
// that a residue lacks are weights of 0, and so an infinite dy makes NaN of pixels near by that its definition spares.

#include <cstddef>

#include "conv.h"
#include "lib/backends/eigen/gemm/column_product.h"

namespace lamina::eigen {

template <class T>
class SubpixelData {
 public:
  SubpixelData(const ConvUnit&, int threads, const MicroKernels<T>& kernels);
  std::size_t workspace_bytes() const;
  void run(const Args&, ThreadPool&) const;

 private:
  /// One axis: the residues, the taps of each, and the values of i from the first that reaches dx.
  struct Axis {
    int stride, pad, kernel, extent;  // the last: of dx
    int taps() const { return (kernel + stride - 1) / stride; }
    int first() const { return pad / stride; }
    int count() const { return (extent - 1 + pad) / stride - first() + 1; }
    /// The place in dx of residue a of the first i.
    int start(int a) const { return first() * stride + a - pad; }
  };
  struct Buffers {
    T* weights;  // groups x (c, a, b) x (k, u, v)
    T* sums;     // image parts x (c, a, b) x (i, j)
    std::byte* parts;
  };

  std::int64_t rows() const { return std::int64_t{c_.group_channels()} * h_.stride * w_.stride; }
  std::int64_t grid() const { return std::int64_t{h_.count()} * w_.count(); }
  ColumnProduct<T> product(int threads, const MicroKernels<T>&) const;
  Buffers allocate(ScratchAllocator&) const;
  void sort_weights(const T* w, T* to, std::int64_t first, std::int64_t last) const;
  void place(const T* sums, T* image, std::int64_t first, std::int64_t last) const;

  ConvUnit c_;
  Axis h_, w_;
  int image_parts_;  ///< images at a time
  int share_parts_;  ///< threads for each of them
  ColumnProduct<T> product_;
};

extern template class SubpixelData<float>;
extern template class SubpixelData<double>;

/// Whether this way beats the others.
bool is_subpixel(const ConvUnit&);

}  // namespace lamina::eigen
