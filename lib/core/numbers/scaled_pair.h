#pragma once
// Two numbers that are copied and scaled on the device: a loss and its score, or the gradient of a loss.

#include "lamina/backend.h"

namespace lamina {

/// The update that writes p = factor g for two numbers. It is a lazy update with one row, because a dense update takes
/// whole packs. So p stays as it is if both numbers of g are 0.
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
