#pragma once
// Images with another number of rows and columns.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Where an axis of y reads x: element i lies at cell i step + offset, limited to the cells of x. It reads the cell
/// below. If linear, it reads the cell above, too, and the nearer cell has the greater weight.
struct Positions {
  double step, offset;
  int extent;  ///< extent of x
  bool linear;
};

template <class T>
void resize_forward(Stream, View<const T> x, Positions rows, Positions columns, View<T> y);

/// dx = the sum of all dy, each times the weight of the cell in its y; or dx += with `adds`.
template <class T>
void resize_backward(Stream, View<const T> dy, Positions rows, Positions columns, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
