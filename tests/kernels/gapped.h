#pragma once
// A tensor in memory as a launcher requires it.

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/stream.h"
#include "lib/core/numbers/float16.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

template <class T>
T stored(double number) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(number);
  else
    return {narrow(std::is_same_v<T, cuda_host::F16> ? DType::f16 : DType::bf16, number)};
}
template <class T>
double number_of(T stored) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(stored);
  else
    return widen(std::is_same_v<T, cuda_host::F16> ? DType::f16 : DType::bf16, stored.bits);
}

/// Aligned to 16 bytes, with `gap` elements of NaN after every image and some at the end. Without values the elements
/// are NaN, too.
template <class T>
class Gapped {
 public:
  Gapped(const Shape& shape, std::int64_t gap, const Values& values = {}) : shape_(shape), pitch_(shape.image() + gap) {
    constexpr std::int64_t behind = 256;
    memory_.assign(static_cast<std::size_t>(shape.n * pitch_ + behind), stored<T>(NAN));
    data_ = memory_.data() + (16 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 16) % 16 / sizeof(T);
    for (std::size_t i = 0; i < values.size(); ++i) *at(static_cast<std::int64_t>(i)) = stored<T>(values[i]);
  }

  T* data() { return data_; }
  cuda_host::View<T> view() { return {data_, shape_.n, shape_.c, shape_.h, shape_.w, pitch_}; }
  cuda_host::View<const T> seen() const { return {data_, shape_.n, shape_.c, shape_.h, shape_.w, pitch_}; }
  Values values() const {
    Values result;
    for (std::int64_t i = 0; i < shape_.count(); ++i) result.push_back(number_of(*at(i)));
    return result;
  }
  /// Whether everything outside the elements is unchanged.
  bool gaps_are_whole() const {
    std::int64_t numbers = 0;
    for (const T value : memory_) numbers += std::isnan(number_of(value)) ? 0 : 1;
    return numbers == shape_.count();
  }

 private:
  T* at(std::int64_t i) const { return data_ + i / shape_.image() * pitch_ + i % shape_.image(); }

  Shape shape_;
  std::int64_t pitch_;
  std::vector<T> memory_;
  T* data_;
};

}  // namespace lamina::test
