#pragma once
// Elements in other places: a constant border, channels in another order.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// What the border shows: a number, or cells of the image.
enum class BorderOf { value, edge, reflect, wrap };

/// Rows above and columns on the left; those below and on the right follow from the extents.
struct Border {
  int top, left;
  BorderOf of;
};

/// y = x inside the border; in it `value`, or cells of x.
template <class T>
void pad_forward(Stream, View<const T> x, Border, T value, View<T> y);

/// dx = dy inside the border, and what the border shows of it; or dx += with `adds`.
template <class T>
void pad_backward(Stream, View<const T> dy, Border, View<T> dx, bool adds);

/// Channel i groups + g of `to` becomes channel g C/groups + i of `from`, or is added to with `adds`. The inverse has
/// C/groups groups.
template <class T>
void channel_shuffle(Stream, View<const T> from, View<T> to, int groups, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
