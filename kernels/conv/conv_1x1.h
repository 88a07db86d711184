#pragma once
// Convolution by 1x1 kernels without padding: a matrix product that reads its factors directly from the tensors.

#include "conv_geometry.h"
#include "conv_implicit_gemm.h"

namespace lamina::LAMINA_CUDA_SPACE {

// Tiles, ranges and `partial` are as in conv_implicit_gemm.h. Only groups and strides of the geometry are
// read. With a stride, "pixels" means the pixels of y.

/// most pixels of a batch, and most weights and tiles of a group
constexpr std::int64_t conv_1x1_most = conv_implicit_gemm_most;
constexpr std::int64_t conv_1x1_most_groups = 65535;  ///< limit of the grid's y

/// The number of tiles of the smallest size in a group's results, which are rows by pixels.
constexpr std::int64_t conv_1x1_blocks(std::int64_t rows, std::int64_t pixels) {
  return (rows + 63) / 64 * ((pixels + 63) / 64);
}

struct Conv1x1 {
  static constexpr const char* name = "gemm_1x1";

  /// Bytes of `partial` for the launchers below; 0 for one range. They depend on shapes alone.
  template <class T>
  static std::size_t forward_bytes(const ConvGeometry&, const View<const T>& x, const View<T>& y, int ranges = 0);
  template <class T>
  static std::size_t backward_data_bytes(const ConvGeometry&, const View<const T>& dy, const View<T>& dx,
                                         int ranges = 0);
  template <class T>
  static std::size_t backward_weights_bytes(const ConvGeometry&, const View<const T>& x, const View<const T>& dy,
                                            int ranges = 0);

  /// y = w x.
  template <class T>
  static void forward(Stream, const ConvGeometry&, View<const T> x, const T* w, View<T> y, const ConvEnd<T>&,
                      T* partial, int ranges = 0, ConvTile = ConvTile::automatic);

  /// dx = w^T dy, or dx += with `adds`. Pixels between strides become 0, or with `adds` are left unchanged.
  template <class T>
  static void backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx, bool adds,
                            T* partial, int ranges = 0, ConvTile = ConvTile::automatic);

  /// dw = the sum over images of dy x^T, or dw += with `adds`; dw is dy.c x x.c / groups, dense.
  template <class T>
  static void backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw, T* partial,
                               bool adds, int ranges = 0, ConvTile = ConvTile::automatic);
};

}  // namespace lamina::LAMINA_CUDA_SPACE
