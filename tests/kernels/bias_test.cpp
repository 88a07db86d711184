// The gradient of a bias against a plain sum, over slices, packs, pitches and masks. Numbers are whole, so that every
// sum is exact.

#include "kernels/bias.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"

using namespace lamina::cuda_host;

namespace {

/// `gap` elements between images, before the first, and after the last; nobody may read them.
template <class T>
struct Images {
  Images(int n, int c, int h, int w, int gap, int seed) : values((c * h * w + gap) * n + gap, T(NAN)) {
    view = {values.data() + gap, n, c, h, w, std::int64_t{c} * h * w + gap};
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < c * h * w; ++j)
        values[static_cast<std::size_t>(gap + i * view.pitch + j)] = static_cast<T>((i * 7 + j * seed) % 23 - 11);
  }
  std::vector<T> values;
  View<const T> view;
};

template <class T>
void check_bias(int n, int c, int h, int w, int gap, bool masks, bool adds) {
  INFO(n << "x" << c << "x" << h << "x" << w << ", gap " << gap << (masks ? ", masked" : "") << (adds ? ", adds" : ""));
  const Images<T> dy(n, c, h, w, gap, 5), mask(n, c, h, w, gap, 3);
  const Masked<T> gradient{dy.view, masks ? mask.view : View<const T>()};
  std::vector<T> got(static_cast<std::size_t>(c), adds ? T(3) : T(NAN)), want(got.size(), adds ? T(3) : T(0));
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < c; ++k)
      for (int j = 0; j < h * w; ++j)
        if (!masks || mask.view.at(i, k)[j] > 0) want[static_cast<std::size_t>(k)] += dy.view.at(i, k)[j];
  std::vector<double> partial(bias_gradient_bytes(c, std::int64_t{n} * h * w) / sizeof(double), double(NAN));
  bias_gradient(nullptr, gradient, got.data(), adds, partial.data());
  CHECK(got == want);
}

template <class T>
void check_biases() {
  for (const bool masks : {false, true})
    for (const bool adds : {false, true}) {
      check_bias<T>(3, 5, 7, 9, 0, masks, adds);
      check_bias<T>(2, 3, 32, 36, 0, masks, adds);   // two slices, in packs
      check_bias<T>(2, 3, 32, 36, 16, masks, adds);  // images apart
      check_bias<T>(5, 2, 23, 29, 0, masks, adds);   // three slices, no packs
      check_bias<T>(300, 4, 1, 1, 4, masks, adds);   // fully connected: one pixel
    }
}

}  // namespace

TEST_CASE("the gradient of a bias is the sum over images and pixels") {
  check_biases<float>();
  check_biases<double>();
}

TEST_CASE("the gradient of a bias needs memory where a channel is cut only") {
  CHECK(bias_gradient_bytes(2, 2047) == 0);
  CHECK(bias_gradient_bytes(2, 2048) == 2 * 2 * sizeof(double));
  CHECK(bias_gradient_bytes(4096, 1 << 20) == 0);
}
