#pragma once
// Input numbers of tests. All are exact in f32, so that every element type gets the same numbers.

#include <cmath>
#include <cstdint>
#include <vector>

#include "lamina/device.h"
#include "lamina/shape.h"

namespace lamina::test {

/// A tensor on the host: dense, in the order n, c, h, w.
using Values = std::vector<double>;

Values zeros(const Shape&);
Values normal(const Shape&, std::uint64_t key);
/// Whole numbers in [-3, 3]. Sums and products of them are exact in f32.
Values integers(const Shape&, std::uint64_t key);
template <class T>
std::vector<T> integers(std::int64_t count, std::uint64_t key) {
  const Values values = integers({1, 1, 1, static_cast<int>(count)}, key);
  return {values.begin(), values.end()};
}
/// Every number once, in random order, 1/8 apart and centred on 0, so that max pooling has one clear winner.
Values permutation(const Shape&, std::uint64_t key);
/// Normal numbers pushed away from 0 by 0.1, so that no ReLU is near its kink.
Values apart_from_zero(const Shape&, std::uint64_t key);

/// A tensor's elements, from any device, layout and pitch. The call waits.
Values read(Device&, const Tensor&);
void write(Device&, const Tensor&, const Values&);

/// The values rounded to the nearest numbers of a type.
Values rounded(Values, DType);

Values absolute(Values);
Values plus(Values, const Values&);  ///< element by element
double largest_of(const Values&);    ///< absolute value
/// The larger number, or NaN if either is NaN, so that no bound holds. std::max(largest, NaN) would be `largest`.
inline double larger(double largest, double next) { return std::isnan(largest) || next <= largest ? largest : next; }
/// The largest difference of two elements, or NaN if one of them is NaN; infinite for different sizes.
double largest_gap(const Values&, const Values&);

std::uint64_t digest(const std::vector<Values>&);  ///< of all bits

/// The seed of the random tests: LAMINA_TEST_SEED, or 1.
std::uint64_t seed();

/// A stream of random whole numbers for the choices of a random test.
class Dice {
 public:
  explicit Dice(std::uint64_t key) : key_(key) {}
  /// A number that is uniform in [low, high].
  int operator()(int low, int high);
  bool chance(double probability);
  std::uint64_t word();

 private:
  std::uint64_t key_;
  std::uint64_t rolls_ = 0;
};

}  // namespace lamina::test
