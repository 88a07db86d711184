#pragma once
// Input numbers for tests. All are exact in f32, so f32 and f64 get the same numbers.

#include <cmath>
#include <cstdint>
#include <vector>

#include "lamina/device.h"
#include "lamina/shape.h"

namespace lamina::test {

/// A dense tensor on the host, in the order n, c, h, w.
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
/// Distinct numbers in random order, 1/8 apart and centred on 0, so that every maximum is clear.
Values permutation(const Shape&, std::uint64_t key);
/// Normal numbers that are moved away from 0 by 0.1, so that no ReLU is near its kink.
Values apart_from_zero(const Shape&, std::uint64_t key);

/// The elements of a tensor on any device, with any layout and pitch. Waits for the device.
Values read(Device&, const Tensor&);
void write(Device&, const Tensor&, const Values&);

/// The values rounded to the nearest numbers of a type.
Values rounded(Values, DType);

Values absolute(Values);
Values plus(Values, const Values&);  ///< the sum, element by element
double largest_of(const Values&);    ///< largest absolute value
/// The larger number, or NaN if one of them is NaN, so that no bound holds for it. std::max(largest, NaN) is `largest`.
inline double larger(double largest, double next) { return std::isnan(largest) || next <= largest ? largest : next; }
/// The largest difference of two elements. NaN if an element is NaN, infinite if the sizes differ.
double largest_gap(const Values&, const Values&);

std::uint64_t digest(const std::vector<Values>&);  ///< a hash of all bits

/// The seed of the random tests: LAMINA_TEST_SEED, by default 1.
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
