#pragma once
// Evenly spaced positions inside an extent.

#include <algorithm>

namespace lamina::eigen {

/// a / b rounded up, for b > 0; a may be negative.
constexpr int ceil_div(int a, int b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/// The integers [first, last).
struct Range {
  int first, last;
};

/// The i in [0, count) for which low <= i * step + offset < high.
constexpr Range range_within(int count, int step, int offset, int low, int high) {
  const int first = std::clamp(ceil_div(low - offset, step), 0, count);
  return {first, std::clamp(ceil_div(high - offset, step), first, count)};
}

}  // namespace lamina::eigen
