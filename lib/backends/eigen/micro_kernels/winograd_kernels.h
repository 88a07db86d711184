#pragma once
// The transforms of Winograd's minimal filtering, vectorised over channels: a table of functions for each instruction
// set.
//
// Y = A^T [ sum over channels of (G g G^T) * (B^T d B) ] A. A tile of Y has tile x tile outputs, and filters have taps
// x taps weights. A patch d of the source has patch x patch elements, where patch = tile + taps - 1. The product * is
// computed for each of these positions. The gradient of g is G^T [ sum over tiles of (A dy A^T) * (B^T d B) ] G.
//
// "Pixels" are transposed planes, [rows][cols][lanes]. Lanes are consecutive channels.

#include <cstdint>

#include "epilogue.h"

namespace lamina::eigen {

/// A window onto planes of T of one image, for as many channels as a vector has lanes. It may reach beyond the planes.
template <class T>
struct PixelWindow {
  T* data;             ///< row 0, column 0 of the first channel's plane; only read by stage()
  const T* mask;       ///< for stage(): null, or planes like those of data; pixels are 0 where the mask is not above 0
  std::int64_t plane;  ///< elements from channel to channel
  int channels;        ///< number of channels, 1 to lanes
  int h, w;            ///< extents of a plane
  int first_h, first_w;
  int rows, cols;
  std::int64_t prefetch = 0;  ///< elements from data to the next window's data, which is prefetched; 0: none
};

/// A row of tiles before or after a transform. Position (i, j) of tile t starts at at[(i * patch + j) * position + t *
/// tile], `lanes` elements.
template <class T>
struct Points {
  T* at;
  std::int64_t position, tile;
  std::int64_t tiles;
};

/// The transforms of one tile size and one filter size.
template <class T>
struct WinogradTransforms {
  int tile, taps, patch;
  /// Number of columns of pixels that the patches of `count` tiles side by side have.
  std::int64_t patch_cols(std::int64_t count) const { return (count - 1) * tile + patch; }
  /// B^T d B for patches that start every `tile` columns of pixels with `patch` rows of `cols` columns.
  void (*patches)(const Points<T>& to, const T* pixels, std::int64_t cols);
  /// A dy A^T for tiles side by side in pixels with `tile` rows; adds every pixel to sums[lane].
  void (*tiles)(const Points<T>& to, const T* pixels, std::int64_t cols, T* sums);
  /// A^T m A + bias[lane]: pixels with `tile` rows.
  void (*outputs)(T* pixels, std::int64_t cols, const Points<T>& from, const T* bias);
  /// G g G^T, at to[(i * patch + j) * position]. Lane l's filter is at from[l * stride], times scale[l] (if not null),
  /// rotated by 180 degrees if `flipped`. Lanes from `count` on are zeros. Prefetches the filters that are `distance`
  /// elements after these.
  void (*filters)(T* to, std::int64_t position, const T* from, std::int64_t stride, const T* scale, int count,
                  bool flipped, std::int64_t distance);
  /// G^T m G: element (r, s) of lane i's gradient goes to to[i * stride + taps * r + s] for i < count, added if `add`.
  void (*gradients)(T* to, std::int64_t stride, const T* from, std::int64_t position, int count, bool add);
};

template <class T>
struct WinogradKernels {
  void (*stage_plain)(T* pixels, const PixelWindow<T>&);  ///< pixels from planes, zeros beyond them
  /// Planes from pixels (+ the old content), within `bounds` if it is not null; touches nothing beyond the planes.
  void (*unstage_plain)(const T* pixels, const PixelWindow<T>&, bool add, const Bounds<T>* bounds);
  /// The same on planes of bf16. Null if T is not float.
  void (*stage_bf16)(T* pixels, const PixelWindow<std::uint16_t>&);
  void (*unstage_bf16)(const T* pixels, const PixelWindow<std::uint16_t>&, bool add, const Bounds<T>* bounds);

  void stage(T* pixels, const PixelWindow<T>& window) const { stage_plain(pixels, window); }
  void stage(T* pixels, const PixelWindow<std::uint16_t>& window) const { stage_bf16(pixels, window); }
  void unstage(const T* pixels, const PixelWindow<T>& window, bool add, const Bounds<T>* bounds) const {
    unstage_plain(pixels, window, add, bounds);
  }
  void unstage(const T* pixels, const PixelWindow<std::uint16_t>& window, bool add, const Bounds<T>* bounds) const {
    unstage_bf16(pixels, window, add, bounds);
  }

  WinogradTransforms<T> f2x2_3x3, f4x4_3x3, f2x2_5x5;
};

}  // namespace lamina::eigen
