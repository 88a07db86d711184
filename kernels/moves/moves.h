#pragma once
// Elements in other places: a border around images, channels in another order.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The kind of a border: a constant, or cells of the image.
enum class BorderOf { value, edge, reflect, wrap };

/// Rows above and columns on the left. Those below and on the right follow from the extents.
struct Border {
  int top, left;
  BorderOf of;
};

/// y = x inside the border, and `value` or cells of x in it.
template <class T>
void pad_forward(Stream, View<const T> x, Border, T value, View<T> y);

/// dx = dy inside the border plus the dy of the border cells that show it; or dx += with `adds`.
template <class T>
void pad_backward(Stream, View<const T> dy, Border, View<T> dx, bool adds);

/// Channel i groups + g of `to` becomes channel g C/groups + i of `from` or, with `adds`, is increased by it. The
/// inverse has C/groups groups.
template <class T>
void channel_shuffle(Stream, View<const T> from, View<T> to, int groups, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
