#pragma once
// The largest of many numbers, in tests that compare it with a bound.

#include <cmath>

namespace lamina::test {

/// The larger one, or NaN where either is: it is below no bound. std::max(largest, NaN) would be `largest`.
inline double larger(double largest, double next) { return std::isnan(largest) || next <= largest ? largest : next; }

}  // namespace lamina::test
