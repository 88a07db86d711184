#pragma once
// A quotient rounded up.

#include "stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The number of units that hold `count`, which is not negative.
template <class Count, class Unit>
LAMINA_HOST_DEVICE constexpr auto divide_up(Count count, Unit unit) {
  return (count + unit - 1) / unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
