// Device memory between guard regions (walls).

#include "tests/support/guarded.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "lib/core/numbers/float16.h"

namespace lamina::test {
namespace {

constexpr std::size_t wall_bytes = 512;  // a multiple of 256, the alignment that the contract requires

std::vector<unsigned char> nans(std::size_t bytes, std::uint64_t salt) {
  std::vector<unsigned char> pattern(bytes);
  for (std::size_t i = 0; i < bytes; i += 4) {
    // The pattern is one NaN as f64 and f32, and two NaNs as f16 and bf16. Its other bits depend on the position, so
    // that copying one NaN over another is detected.
    const auto place = static_cast<std::uint32_t>((i / 4 * 0x9E37U + salt * 0x85EBU) & 0xFFFFU);
    const std::uint32_t word = 0x7FF87FC0U | (place & 0x3FU) | (place & 0x1C0U) << 10;
    std::memcpy(pattern.data() + i, &word, std::min<std::size_t>(4, bytes - i));
  }
  return pattern;
}

// The number of rows of a tensor. A row is contiguous in memory, and rows begin one pitch apart.
std::int64_t rows_of(const Tensor& like) {
  return like.layout == Layout::nchw ? like.shape.n : like.shape.n * like.shape.plane();
}

std::size_t span_of(const Tensor& like) {
  const std::int64_t last = dense_pitch(like.shape, like.layout);
  return static_cast<std::size_t>((rows_of(like) - 1) * like.pitch + last) * size_of(like.dtype);
}

// The position of the first different byte, or the size.
std::size_t first_difference(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
  if (a == b) return a.size();
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

template <class T>
T loaded(const unsigned char* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

double load(const unsigned char* from, DType dtype) {
  switch (dtype) {
    case DType::f64: return loaded<double>(from);
    case DType::f32: return loaded<float>(from);
    case DType::u64: return static_cast<double>(loaded<std::uint64_t>(from));
    case DType::f16:
    case DType::bf16: return widen(dtype, loaded<std::uint16_t>(from));
  }
  throw std::logic_error("no such type");
}

void store(unsigned char* to, DType dtype, double number) {
  const auto put = [to](auto value) { std::memcpy(to, &value, sizeof value); };
  switch (dtype) {
    case DType::f64: return put(number);
    case DType::f32: return put(static_cast<float>(number));
    case DType::u64: return put(static_cast<std::uint64_t>(number));
    case DType::f16:
    case DType::bf16: return put(narrow(dtype, number));
  }
}

}  // namespace

GuardedBlock::GuardedBlock(Device& device, std::size_t bytes, std::uint64_t salt)
    : device_(device), bytes_(bytes), walls_(nans(2 * wall_bytes, salt)), buffer_(device, bytes + 2 * wall_bytes) {
  unsigned char* const first = static_cast<unsigned char*>(buffer_.data());
  device.fill(first, 0xff, buffer_.size_bytes());
  device.upload(first, walls_.data(), wall_bytes);
  device.upload(first + wall_bytes + bytes, walls_.data() + wall_bytes, wall_bytes);
}

void* GuardedBlock::data() const {
  return bytes_ == 0 ? nullptr : static_cast<unsigned char*>(buffer_.data()) + wall_bytes;
}

std::string GuardedBlock::damage() const {
  std::vector<unsigned char> now(walls_.size());
  const unsigned char* const first = static_cast<unsigned char*>(buffer_.data());
  device_.download(now.data(), first, wall_bytes);
  device_.download(now.data() + wall_bytes, first + wall_bytes + bytes_, wall_bytes);
  const std::size_t i = first_difference(now, walls_);
  if (i == now.size()) return {};
  const auto place = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(wall_bytes);
  return "wrote byte " + std::to_string(place + (place < 0 ? 0 : static_cast<std::int64_t>(bytes_))) + " of " +
         std::to_string(bytes_);
}

GuardedTensor::GuardedTensor(Device& device, const Tensor& like, std::uint64_t salt, int offset)
    : device_(device),
      like_(like),
      first_(wall_bytes + static_cast<std::size_t>(offset) * size_of(like.dtype)),
      pattern_(nans(first_ + span_of(like) + wall_bytes, salt)),
      buffer_(device, pattern_.size()) {
  poison();
}

std::vector<unsigned char> GuardedTensor::now() const {
  std::vector<unsigned char> whole(pattern_.size());
  device_.download(whole.data(), buffer_.data(), whole.size());
  return whole;
}

void GuardedTensor::write(const std::vector<unsigned char>& whole) {
  last_set_ = whole;
  device_.upload(buffer_.data(), whole.data(), whole.size());
}

Tensor GuardedTensor::tensor() const {
  Tensor tensor = like_;
  tensor.data = static_cast<unsigned char*>(buffer_.data()) + first_;
  return tensor;
}

std::size_t GuardedTensor::address(std::int64_t element) const {
  const Shape& shape = like_.shape;
  std::int64_t place = 0;
  if (like_.layout == Layout::nchw) {
    place = element / shape.image() * like_.pitch + element % shape.image();
  } else {
    const std::int64_t n = element / shape.image(), c = element % shape.image() / shape.plane();
    place = (n * shape.plane() + element % shape.plane()) * like_.pitch + c;
  }
  return first_ + static_cast<std::size_t>(place) * size_of(like_.dtype);
}

void GuardedTensor::set(const Values& values) {
  if (static_cast<std::int64_t>(values.size()) != like_.shape.count())
    throw std::logic_error(std::to_string(values.size()) + " values for " + to_string(like_.shape));
  std::vector<unsigned char> whole = pattern_;
  for (std::size_t i = 0; i < values.size(); ++i)
    store(whole.data() + address(static_cast<std::int64_t>(i)), like_.dtype, values[i]);
  write(whole);
}

Values GuardedTensor::get() const {
  const std::vector<unsigned char> whole = now();
  Values values(static_cast<std::size_t>(like_.shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = load(whole.data() + address(static_cast<std::int64_t>(i)), like_.dtype);
  return values;
}

std::string GuardedTensor::damage() const {
  const std::vector<unsigned char> whole = now();
  std::vector<unsigned char> allowed = pattern_;  // the pattern with the present elements
  const std::size_t row = static_cast<std::size_t>(dense_pitch(like_.shape, like_.layout)) * size_of(like_.dtype);
  const std::size_t pitch = static_cast<std::size_t>(like_.pitch) * size_of(like_.dtype);
  for (std::int64_t r = 0; r < rows_of(like_); ++r) {
    const std::size_t at = first_ + static_cast<std::size_t>(r) * pitch;
    std::memcpy(allowed.data() + at, whole.data() + at, row);
  }
  const std::size_t i = first_difference(whole, allowed);
  if (i == whole.size()) return {};
  return "wrote byte " + std::to_string(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(first_)) +
         ", outside the elements of " + to_string(like_.shape) + " with pitch " + std::to_string(like_.pitch);
}

}  // namespace lamina::test
