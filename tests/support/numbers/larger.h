#pragma once
// The largest of many numbers, in tests that compare it with a bound.

#include <cmath>

namespace lamina::test {

/// The larger number, or NaN if either is NaN, so that no bound holds. std::max(largest, NaN) would be `largest`.
inline double larger(double largest, double next) { return std::isnan(largest) || next <= largest ? largest : next; }

}  // namespace lamina::test
