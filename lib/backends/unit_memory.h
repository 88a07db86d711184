#pragma once
// One unit's tensors and blocks bound in memory that is lent for a measurement.

#include <cstddef>

#include "lamina/backend.h"

namespace lamina {

/// Where a unit lies in lent memory, and how much of it that takes: every tensor and block aligned to 256, those that
/// every algorithm shares in front.
struct UnitMemory {
  Args args;                      ///< all but workspace and prepared; gradients that the unit does not want are null
  std::size_t tensors_bytes = 0;  ///< of x, dx, w, dw, y and dy, which lie in front
  std::size_t bytes = 0;          ///< of all that is bound
};

/// Binds from `lent` on; where that is null it only counts.
UnitMemory bind_unit(const Spec&, const Lowered&, void* lent);

/// The next multiple of 256.
constexpr std::size_t aligned_bytes(std::size_t bytes) { return (bytes + 255) & ~std::size_t{255}; }

}  // namespace lamina
