// Conversions between halves and f32.

#include <bit>

#include "lib/core/numbers/float16.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

namespace lamina::test {
namespace {

/// The numbers converted to another type, by a unit that only copies. If `pitched`, a gap follows each of `images`
/// images.
Values cast(Backend& with, const Values& numbers, DType from, DType to, int images, bool pitched) {
  const auto count = static_cast<int>(numbers.size()) / images;
  const Case c{"", Slice{.first = 0, .count = count}, {{images, count, 1, 1}}, {}, Mode::inference};
  Spec spec = *make_spec(with, c, {.dtype = DType::f32, .pitched = pitched});
  spec.x[0].dtype = from;
  spec.y.dtype = to;
  Feed feed;
  feed.x = {numbers};
  return run_unit(with, spec, {}, feed).y;
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

}  // namespace

void check_conversions(Backend& with, DType dtype, int images, bool pitched) {
  INFO(to_string(dtype) << ", " << images << (pitched ? " images with gaps" : " images"));
  Values halves(65538), floats(300006);  // an image of floats is no whole number of packs
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = widen(dtype, static_cast<std::uint16_t>(i));
  for (std::size_t i = 0; i < floats.size(); ++i) {
    auto bits = static_cast<std::uint32_t>(i * 2654435761U);
    if (i % 3 == 0) bits = (bits & 0xffffe000U) | 0x1000U;  // ties of f16
    if (i % 3 == 1) bits = (bits & 0xffff0000U) | 0x8000U;  // ties of bf16
    // numbers below 2 in the range of f16, subnormal ones included
    if (i % 2 == 0) bits = (bits & 0x8fffffffU) | 0x30000000U;
    floats[i] = static_cast<double>(std::bit_cast<float>(bits));
  }
  if (images == 1) halves.resize(65536), floats.resize(300000);  // whole packs
  const Values wide = cast(with, halves, dtype, DType::f32, images, pitched);
  const Values rounded = cast(with, floats, DType::f32, dtype, images, pitched);
  int different = 0;
  for (std::size_t i = 0; i < halves.size(); ++i) different += !same(wide[i], halves[i]);
  for (std::size_t i = 0; i < floats.size(); ++i)
    different += !same(rounded[i], widen(dtype, narrow(dtype, floats[i])));
  CHECK(different == 0);
}

}  // namespace lamina::test
