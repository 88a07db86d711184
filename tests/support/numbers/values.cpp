// Input numbers of tests.

#include "tests/support/numbers/values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lamina/random.h"
#include "lib/core/numbers/float16.h"

namespace lamina::test {

Values zeros(const Shape& shape) { return Values(static_cast<std::size_t>(shape.count()), 0.0); }

Values normal(const Shape& shape, std::uint64_t key) {
  Values values = zeros(shape);
  fill_normal(values, key);
  for (double& value : values) value = static_cast<float>(value);
  return values;
}

Values rounded(Values values, DType dtype) {
  for (double& value : values) {
    if (is_half(dtype)) value = widen(dtype, narrow(dtype, value));
    if (dtype == DType::f32) value = static_cast<float>(value);
  }
  return values;
}

Values integers(const Shape& shape, std::uint64_t key) {
  Values values = zeros(shape);
  fill_uniform(values, key);
  for (double& value : values) value = std::floor(value * 7) - 3;
  return values;
}

Values permutation(const Shape& shape, std::uint64_t key) {
  Values values = zeros(shape);
  const auto count = static_cast<int>(values.size());
  std::iota(values.begin(), values.end(), -count / 2);
  Dice dice(key);
  for (int i = count - 1; i > 0; --i)
    std::swap(values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(dice(0, i))]);
  for (double& value : values) value /= 8;
  return values;
}

Values apart_from_zero(const Shape& shape, std::uint64_t key) {
  Values values = normal(shape, key);
  for (double& value : values) value = static_cast<float>(value + (value < 0 ? -0.1 : 0.1));
  return values;
}

Values plus(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values absolute(Values values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

double largest_of(const Values& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double largest_gap(const Values& a, const Values& b) {
  double gap = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) gap = larger(gap, std::abs(a[i] - b[i]));
  return gap;
}

std::uint64_t digest(const std::vector<Values>& all) {
  std::string bytes;
  for (const Values& values : all)
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  return hash(bytes);
}

std::uint64_t seed() {
  const char* text = std::getenv("LAMINA_TEST_SEED");
  return text == nullptr ? 1 : std::stoull(text);
}

std::uint64_t Dice::word() {
  const auto words = philox(key_, rolls_++, 0xD1CE);
  return std::uint64_t{words[0]} << 32 | words[1];
}

int Dice::operator()(int low, int high) {
  return low + static_cast<int>(word() % static_cast<std::uint64_t>(high - low + 1));
}

bool Dice::chance(double probability) { return static_cast<double>(word() >> 11) * 0x1p-53 < probability; }

Values read(Device& device, const Tensor& tensor) {
  Values values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

void write(Device& device, const Tensor& tensor, const Values& values) {
  upload(device, tensor, std::span<const double>(values));
}

}  // namespace lamina::test
