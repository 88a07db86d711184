#pragma once
// Ops that move elements: borders, other sizes, other orders, parts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "lamina/api.h"
#include "lamina/ops/layers.h"
#include "lamina/shape.h"

namespace lamina {

/// The cells that a border is made of: a constant value, the nearest cell of the image, its mirror image, or the cell
/// at the opposite end.
enum class PadBy : std::uint8_t { value, edge, reflect, wrap };

/// y[n,c,p,q] = x[n, c - channels_before, h, w], where h = p - before.h and w = q - before.w. If h or w is outside x,
/// y is `value`, or h is replaced as follows, and w alike:
///     edge      0 or H - 1, whichever is nearer
///     reflect   -h or 2 (H - 1) - h
///     wrap      h + H or h - H
/// y: N x channels_before + C + channels_after x before.h + H + after.h x before.w + W + after.w
/// dx is the part of dy inside. Except by value, each cell also gets the dy of the border cells that copy it.
/// ShapeError: a negative side, an extent above 2^31 - 1, a value that is NaN or, if finite, beyond f32, a side above
/// H - 1 by reflect or above H by wrap, padded channels except by value.
struct Pad {
  Size before = 0;  ///< rows above, columns on the left
  Size after = 0;   ///< rows below, columns on the right
  double value = 0;
  PadBy by = PadBy::value;
  int channels_before = 0, channels_after = 0;
  bool operator==(const Pad&) const = default;
};

/// How an element of y is made from x, along each axis. Element i of y lies at cell i step + offset of x, limited to 0
/// and H - 1. The enumerators are modes of PyTorch's F.interpolate; "bilinear" is linear along both axes.
///     nearest          offset 0; the cell below; PyTorch's "nearest"
///     nearest_exact    offset step / 2; the cell below; PyTorch's "nearest-exact"
///     linear           offset step / 2 - 1/2; the cells below and above, weighted by how near they are
///     linear_aligned   offset 0, step (H - 1) / (to.h - 1): the corners of x and y coincide (align_corners)
enum class ResizeBy : std::uint8_t { nearest, nearest_exact, linear, linear_aligned };

/// y: N x C x to.h x to.w, from x as `by` says. dx[i] is the sum of all dy[j], each times the weight of x[i] in y[j].
///
/// A step of 0 means H / to.h or W / to.w. If PyTorch gets a factor and not a size, its step is 1 / scale_factor, which
/// differs if H scale_factor is no whole number. In nearest modes, a position at most 2^-20 below a cell is that cell.
/// ShapeError: an extent below 1; a step that is negative or not finite in f32, or not 0 where corners are aligned.
struct Resize {
  Size to;  ///< rows and columns of y
  ResizeBy by = ResizeBy::nearest;
  double step_h = 0, step_w = 0;  ///< rows and columns of x from an element of y to the next
  bool operator==(const Resize&) const = default;
};

/// Up to 8 numbers, one for each axis. ShapeError: more.
class Axes {
 public:
  Axes() = default;
  LAMINA_API Axes(std::initializer_list<int>);
  LAMINA_API void push_back(int);
  std::size_t size() const { return size_; }
  const int* begin() const { return numbers_.data(); }
  const int* end() const { return begin() + size_; }
  int operator[](std::size_t i) const { return numbers_[i]; }
  bool operator==(const Axes&) const = default;

 private:
  std::array<int, 8> numbers_{};
  std::size_t size_ = 0;
};

/// Copies each image into another order or grouping of its axes. x is seen as `extents`; axis order[i] becomes axis i;
/// the result is seen as channels x rows x columns. In PyTorch: x.reshape(n, *extents).permute(...).reshape(...).
/// dx is the inverse copy of dy.
/// y: N x channels x rows x columns     ShapeError: the products of extents are not C H W; order is no permutation.
struct Reorder {
  Axes extents, order;
  int channels;
  Size pixels;
  bool operator==(const Reorder&) const = default;
};

/// y[n, i groups + g, h, w] = x[n, g C/groups + i, h, w]: the first channels of all groups, then the second, ...
/// Zhang and others: ShuffleNet, 2017, section 3.1. ShapeError: C is not divisible by groups.
LAMINA_API Reorder channel_shuffle(const Shape& x, int groups);
/// y[n, c, h factor + i, w factor + j] = x[n, (c factor + i) factor + j, h, w]. Shi and others: Real-Time
/// Super-Resolution, 2016, section 3.2. ShapeError: C is not divisible by factor^2.
LAMINA_API Reorder pixel_shuffle(const Shape& x, int factor);
/// The inverse of pixel_shuffle. ShapeError: H or W is not divisible by factor.
LAMINA_API Reorder pixel_unshuffle(const Shape& x, int factor);

/// Concatenates the inputs along an axis; dx[i] is its part of dy.
/// ShapeError: other extents differ; more than 2^31 - 1 elements along the axis.
struct Concat {
  Axis axis = Axis::channel;
  bool operator==(const Concat&) const = default;
};

/// Elements first, first + step, ... of an axis of x, `count` of them. dx = dy there, and 0 elsewhere.
/// ShapeError: first < 0; count or step < 1; an element beyond the axis.
struct Slice {
  Axis axis = Axis::channel;
  int first;
  int count;
  int step = 1;
  bool operator==(const Slice&) const = default;
};

}  // namespace lamina
