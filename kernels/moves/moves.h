#pragma once
// Elements in other places: copies, a border around images, axes in another order, parts of images, transposes.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// to = from, or to += from, between views of one shape, each with its own pitch. The views are the same memory or do
/// not overlap. They have one type, or float and a half.
template <class From, class To>
void copy(Stream, View<const From> from, View<To> to, bool adds);

/// to = value.
template <class T>
void fill(Stream, View<T> to, Computed<T> value);

/// The kind of a border: a constant, or cells of the image.
enum class BorderOf { value, edge, reflect, wrap };

/// Channels before, rows above and columns on the left. The other sides follow from the extents. Added channels always
/// hold the value.
struct Border {
  int front, top, left;
  BorderOf of;
};

/// y = x inside the border, and `value` or cells of x in the border.
template <class T>
void pad_forward(Stream, View<const T> x, Border, T value, View<T> y);

/// dx = dy inside the border plus the dy of the border cells that copy it; or dx += with `adds`.
template <class T>
void pad_backward(Stream, View<const T> dy, Border, View<T> dx, bool adds);

/// The axes of a copy of images, the innermost of the target last: extents, and strides in source and target.
struct ReorderAxes {
  struct {
    int extent, from, to;
  } axes[8];
  int count = 0;
};

/// to = from in another order, or to += with `adds`. It writes all elements of `to` or, with `spreads`, reads all of
/// `from`. The other tensor may have more elements; its view begins at the first element that is used.
template <class T>
void reorder(Stream, View<const T> from, const ReorderAxes&, View<T> to, bool adds, bool spreads = false);

/// `count` matrices that are `apart` elements apart. The elements of a row are contiguous; rows are `pitch` elements
/// apart.
template <class T>
struct Matrices {
  T* data;
  int count, rows, columns;
  std::int64_t pitch, apart;
};

/// Column i of `from` becomes row i of `to`, or is added to it. The two do not overlap. They have one type, or float
/// and a half. Floats and doubles may be added.
template <class From, class To, bool adds = false>
void transpose(Stream, Matrices<const From> from, Matrices<To> to);

}  // namespace lamina::LAMINA_CUDA_SPACE
