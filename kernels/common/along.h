#pragma once
// Axes that a kernel works along, as one axis of an image.

#include "stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// An image as repeats x outer x cells x inner elements, the last ones adjacent. A kernel joins the cells of all
/// repeats for each of outer x inner.
struct CellsAlong {
  int repeats, outer, cells, inner;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
