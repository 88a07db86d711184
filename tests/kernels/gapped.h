#pragma once
// A tensor in device memory, for tests of launchers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/core/numbers/float16.h"
#include "tests/kernels/resident.h"
#include "tests/support/numbers/values.h"

namespace lamina::LAMINA_CUDA_SPACE {

using test::Values;

template <class T>
T stored(double number) {
  if constexpr (!is_stored_half<T>) return static_cast<T>(number);
  if constexpr (is_stored_half<T>) return {lamina::narrow(std::is_same_v<T, F16> ? DType::f16 : DType::bf16, number)};
}
template <class T>
double number_of(T stored) {
  if constexpr (!is_stored_half<T>) return static_cast<double>(stored);
  if constexpr (is_stored_half<T>) return lamina::widen(std::is_same_v<T, F16> ? DType::f16 : DType::bf16, stored.bits);
}

/// A tensor that is aligned to 16 bytes, with `gap` elements of NaN after every image and more NaN at the end. Without
/// values all elements are NaN.
template <class T>
class Gapped {
 public:
  Gapped(const Shape& shape, std::int64_t gap, const Values& values = {})
      : shape_(shape), pitch_(shape.image() + gap), memory_(filled(values)) {}

  T* data() const { return memory_.data(); }
  View<T> view() const { return {data(), shape_.n, shape_.c, shape_.h, shape_.w, pitch_}; }
  Values values() const {
    const std::vector<T> now = memory_.now();
    Values result;
    for (std::int64_t i = 0; i < shape_.count(); ++i) result.push_back(number_of(now[at(i)]));
    return result;
  }
  /// Whether all memory outside the elements is unchanged.
  bool gaps_are_whole() const {
    return std::ranges::count_if(memory_.now(), [](T at) { return !std::isnan(number_of(at)); }) == shape_.count();
  }

 private:
  std::size_t at(std::int64_t i) const {
    return static_cast<std::size_t>(i / shape_.image() * pitch_ + i % shape_.image());
  }
  std::vector<T> filled(const Values& values) const {
    constexpr std::int64_t behind = 256;
    std::vector<T> all(static_cast<std::size_t>(shape_.n * pitch_ + behind), stored<T>(NAN));
    for (std::size_t i = 0; i < values.size(); ++i) all[at(static_cast<std::int64_t>(i))] = stored<T>(values[i]);
    return all;
  }

  Shape shape_;
  std::int64_t pitch_;
  Resident<T> memory_;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
