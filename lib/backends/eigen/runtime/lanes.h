#pragma once
// Sums in double over long rows of floats or doubles, in interleaved lanes and a fixed order.

#include <cstdint>
#include <cstring>

namespace lamina::eigen {

using Double4 = double __attribute__((vector_size(32)));

/// Four elements as doubles.
inline Double4 load4(const double* from) {
  Double4 values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
inline Double4 load4(const float* from) {  // element by element: g++ 12 converts a vector in five instructions, not one
  return Double4{static_cast<double>(from[0]), static_cast<double>(from[1]), static_cast<double>(from[2]),
                 static_cast<double>(from[3])};
}

/// a b + c; see multiply_add() in elements.h.
inline Double4 multiply_add(Double4 a, Double4 b, Double4 c) { return a * b + c; }

/// Two sums that grow together.
class TwoSums {
 public:
  /// Calls each(load, i, first, second), which adds element i to both sums, for i in [0, count): load(p) is the element
  /// at p or, if the sums are lanes, the four elements from p on.
  template <class Each>
  void add(std::int64_t count, const Each& each) {
    const auto four = [](const auto* from) { return load4(from); };
    const auto one = [](const auto* from) { return static_cast<double>(*from); };
    std::int64_t i = 0;
    Double4 a[4], b[4];
    std::memcpy(a, a_, sizeof a);  // in registers while the loop runs
    std::memcpy(b, b_, sizeof b);
    for (; i + 16 <= count; i += 16) {
#pragma GCC unroll 4
      for (int lane = 0; lane < 4; ++lane) each(four, i + 4 * lane, a[lane], b[lane]);
    }
    for (; i + 4 <= count; i += 4) each(four, i, a[0], b[0]);
    for (; i < count; ++i) each(one, i, rest_a_, rest_b_);
    std::memcpy(a_, a, sizeof a);
    std::memcpy(b_, b, sizeof b);
  }

  double first() const { return total(a_) + rest_a_; }
  double second() const { return total(b_) + rest_b_; }

 private:
  static double total(const Double4 (&sums)[4]) {
    const Double4 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  Double4 a_[4] = {}, b_[4] = {};
  double rest_a_ = 0, rest_b_ = 0;  // sums of the elements after the last four
};

}  // namespace lamina::eigen
