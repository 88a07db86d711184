#pragma once
// Multiply-adds whose rate only the units limit: all operands stay in registers. Compiled for each instruction set.

#include <cstdint>

namespace lamina::eigen {

/// Independent sums. Their number is large enough that no unit waits for its last result.
template <class T>
struct RegisterSums {
  std::int64_t count;  ///< number of sums; each takes one multiply-add per step
  /// sum = sum * a + b, `steps` times for each of 0, 1, ..., count - 1; returns their total.
  double (*total)(std::int64_t steps, T a, T b);
};

/// The sums of the instruction set that the including file is compiled for.
extern const RegisterSums<float> register_sums_f32;
extern const RegisterSums<double> register_sums_f64;

}  // namespace lamina::eigen
