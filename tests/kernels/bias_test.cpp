// The gradient of a bias against a plain sum, over slices, packs, pitches and masks. Numbers are whole, so every sum is
// exact.

#include "kernels/bias.h"

#include "lib/core/numbers/float16.h"
#include "tests/support/catch.h"

using namespace lamina::cuda_host;
using lamina::DType;

namespace {

/// Numbers with `gap` elements between images, before the first and after the last. No kernel may read the gaps.
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
      check_bias<T>(2, 3, 32, 36, 16, masks, adds);  // gaps between images
      check_bias<T>(5, 2, 23, 29, 0, masks, adds);   // three slices, no packs
      check_bias<T>(300, 4, 1, 1, 4, masks, adds);   // fully connected: one pixel
    }
}

/// The same numbers in halves, with the same view.
template <class Half>
std::vector<Half> halves_of(const std::vector<float>& values) {
  std::vector<Half> halves;
  for (const float value : values) {
    constexpr DType type = std::is_same_v<Half, F16> ? DType::f16 : DType::bf16;
    halves.push_back({lamina::narrow<type>(value)});
  }
  return halves;
}

template <class Half>
View<Half> view_of(std::vector<Half>& halves, const Images<float>& like) {
  const View<const float>& v = like.view;
  return {halves.data() + (v.data - like.values.data()), v.n, v.c, v.h, v.w, v.pitch};
}

template <class Half>
void check_half_bias(int n, int c, int h, int w, int gap, bool masks, bool adds) {
  INFO(n << "x" << c << "x" << h << "x" << w << ", gap " << gap << (masks ? ", masked" : "") << (adds ? ", adds" : ""));
  const Images<float> dy(n, c, h, w, gap, 5), mask(n, c, h, w, gap, 3);
  std::vector<Half> half_dy = halves_of<Half>(dy.values), half_mask = halves_of<Half>(mask.values);
  const std::vector<Half> before = half_dy;
  const auto channels = static_cast<std::size_t>(c);
  std::vector<float> got(channels, adds ? 3.0F : NAN), want = got;
  std::vector<double> partial(bias_gradient_bytes(c, std::int64_t{n} * h * w) / sizeof(double), double(NAN));
  bias_gradient(nullptr, Masked<float>{dy.view, masks ? mask.view : View<const float>()}, want.data(), adds,
                partial.data());
  const View<Half> v = view_of(half_dy, dy);
  bias_gradient(nullptr, Masked<Half>{v, masks ? View<const Half>(view_of(half_mask, mask)) : View<const Half>()},
                got.data(), adds, partial.data());
  CHECK(got == want);
  if (h == 1 && w == 1 && !masks) {
    std::fill(got.begin(), got.end(), adds ? 3.0F : NAN);
    partial.assign(bias_gradient_of_rows_bytes(c, n) / sizeof(double), double(NAN));
    bias_gradient_of_rows<Half>(nullptr, v, got.data(), adds, partial.data());
    CHECK(got == want);
  }

  Images<float> sums(n, c, h, w, gap, 5);
  std::vector<float> bias;
  for (int k = 0; k < c; ++k) bias.push_back(static_cast<float>(k % 7 - 3));
  const View<const float>& s = sums.view;
  add_bias(nullptr, bias.data(), View<float>{const_cast<float*>(s.data), s.n, s.c, s.h, s.w, s.pitch}, masks);
  add_bias(nullptr, bias.data(), v, masks);
  const std::vector<Half> expected = halves_of<Half>(sums.values);
  const auto different = [&] {
    int count = 0;
    for (std::size_t i = 0; i < half_dy.size(); ++i)
      count +=
          half_dy[i].bits != expected[i].bits && !(std::isnan(sums.values[i]) && half_dy[i].bits == before[i].bits);
    return count;
  };
  CHECK(different() == 0);
  if (h != 1 || w != 1) return;
  half_dy = before;
  add_bias_to_rows(nullptr, bias.data(), view_of(half_dy, dy), masks);
  CHECK(different() == 0);
}

}  // namespace

TEST_CASE("the gradient of a bias is the sum over images and pixels") {
  check_biases<float>();
  check_biases<double>();
}

TEST_CASE("a bias of f32 is added to halves, and its gradient is the sum of halves, also of rows of channels") {
  for (const bool masks : {false, true})
    for (const bool adds : {false, true})
      for (const auto& [n, c, h, w, gap] : std::vector<std::array<int, 5>>{{3, 5, 7, 9, 0},
                                                                           {2, 3, 32, 36, 0},
                                                                           {2, 3, 32, 36, 16},
                                                                           {300, 4, 1, 1, 4},
                                                                           {700, 33, 1, 1, 0},
                                                                           {5000, 64, 1, 1, 8},
                                                                           {3, 2056, 1, 1, 0}}) {
        check_half_bias<F16>(n, c, h, w, gap, masks, adds);
        check_half_bias<BF16>(n, c, h, w, gap, masks, adds);
      }
}

TEST_CASE("rows of channels are cut where there are many") {
  CHECK(bias_gradient_of_rows_bytes(4, 511) == 4 * sizeof(double));
  CHECK(bias_gradient_of_rows_bytes(4, 512) == 2 * 4 * sizeof(double));
  CHECK(bias_gradient_of_rows_bytes(1 << 15, 1 << 20) == (1 << 15) * sizeof(double));
}

TEST_CASE("the gradient of a bias needs memory where a channel is cut only") {
  CHECK(bias_gradient_bytes(2, 2047) == 0);
  CHECK(bias_gradient_bytes(2, 2048) == 2 * 2 * sizeof(double));
  CHECK(bias_gradient_bytes(4096, 1 << 20) == 0);
}
