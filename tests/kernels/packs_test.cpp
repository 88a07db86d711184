// A launch works in packs of 16 bytes only if every address, every pitch and the size allow it.

#include "kernels/common/packs.h"

#include "tests/support/catch.h"

using namespace lamina::cuda_host;

namespace {

alignas(16) float numbers[256];

/// Three images of 2 x 2 x 3 numbers. The first is `offset` numbers after an aligned address. After each image is a gap
/// of `gap` numbers.
View<const float> images(int offset, int gap) { return {numbers + offset, 3, 2, 2, 3, 12 + gap}; }

/// The number of elements per pack of a launch over these tensors.
int width_of(bool flat, const View<const float>& a, const View<const float>& b = {}) {
  int taken = 0;
  packing_of<float>(flat, a, b).with_width([&](auto width, const Extent&) { taken = width; });
  return taken;
}

}  // namespace

TEST_CASE("packs need an aligned address and a pitch of whole packs for each tensor") {
  for (const bool flat : {false, true}) {
    CAPTURE(flat);
    CHECK(width_of(flat, images(0, 0)) == 4);
    CHECK(width_of(flat, images(4, 8)) == 4);
    CHECK(width_of(flat, images(3, 0)) == 1);  // only the address is unaligned
    CHECK(width_of(flat, images(3, 4)) == 1);
    CHECK(width_of(flat, images(0, 3)) == 1);  // only the pitch is odd
    CHECK(width_of(flat, images(0, 0), images(2, 4)) == 1);
    CHECK(width_of(flat, images(0, 0), images(8, 2)) == 1);
    CHECK(width_of(flat, images(0, 4), images(8, 0)) == 4);
  }
}

TEST_CASE("packs need whole packs in each image, or in all images together if these are one range") {
  const View<const float> odd{numbers, 4, 1, 1, 3, 3}, apart{numbers, 4, 1, 1, 3, 4};
  CHECK(width_of(true, odd) == 4);
  CHECK(width_of(false, odd) == 1);
  CHECK(width_of(true, apart) == 1);
}
