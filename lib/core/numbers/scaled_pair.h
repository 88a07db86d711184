#pragma once
// Two numbers that are copied, and scaled, on the device: a loss and its score, or the gradient of a loss.

#include "lamina/backend.h"

namespace lamina {

/// The update that writes p = factor g, of two numbers. It is one of a row, as a dense update is of whole packs. So
/// where both numbers of g are 0, p stays as it is.
inline Update scaled_pair(void* p, void* g, DType dtype, double factor) {
  Update update;
  update.shrink = 0;
  update.rate = -factor;
  update.dtype = dtype;
  update.count = update.lazy_row = 2;
  update.p = p;
  update.g = g;
  return update;
}

}  // namespace lamina
