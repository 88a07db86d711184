// A bias and its gradient compared with plain sums, for slices, packs, pitches and masks. All numbers are whole, so
// every sum is exact.

#include "kernels/bias.h"

#include "tests/kernels/gapped.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using namespace lamina::LAMINA_CUDA_SPACE;

namespace {

/// If `masks`, a ReLU follows the bias, and the gradient is masked.
template <class T>
void check_bias(const Shape& shape, std::int64_t gap, bool masks, bool adds) {
  INFO(to_string(shape) << ", gap " << gap << ", " << sizeof(T) << " bytes" << (masks ? ", masked" : "")
                        << (adds ? ", adds" : ""));
  const Values numbers = integers(shape, 1), masking = integers(shape, 2);
  const Gapped<T> dy(shape, gap, numbers), mask(shape, gap, masking);
  const auto channels = static_cast<std::size_t>(shape.c);
  std::vector<Computed<T>> want(channels, adds ? 3 : 0), bias;
  Values y;
  for (int k = 0; k < shape.c; ++k) bias.push_back(static_cast<Computed<T>>(k % 7 - 3));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t k = i / static_cast<std::size_t>(shape.plane()) % channels;
    if (!masks || masking[i] > 0) want[k] += static_cast<Computed<T>>(numbers[i]);
    y.push_back(numbers[i] + static_cast<double>(bias[k]));
    if (masks) y[i] = std::max(y[i], 0.0);
  }
  const Resident<Computed<T>> added(bias);
  const auto check_gradient = [&](std::size_t partial_bytes, const auto& gradient) {
    const Resident<Computed<T>> got(std::vector<Computed<T>>(channels, adds ? 3 : NAN));
    const Resident<double> partial = scratch<double>(partial_bytes);
    gradient(got.data(), partial.data());
    CHECK(got.now() == want);
  };
  const auto check_sum = [&](const auto& add) {
    const Gapped<T> sums(shape, gap, numbers);
    add(sums.view());
    CHECK((sums.values() == y && sums.gaps_are_whole()));
  };
  const Stream stream = tested_stream();
  check_gradient(bias_gradient_bytes(shape.c, shape.n * shape.plane()), [&](auto* to, void* partial) {
    bias_gradient(stream, Masked<T>{dy.view(), masks ? mask.view() : View<const T>()}, to, adds, partial);
  });
  check_sum([&](const View<T>& to) { add_bias(stream, added.data(), to, masks); });
  if constexpr (is_stored_half<T>) {
    if (shape.plane() != 1) return;
    check_sum([&](const View<T>& to) { add_bias_to_rows(stream, added.data(), to, masks); });
    if (masks) return;
    check_gradient(bias_gradient_of_rows_bytes(shape.c, shape.n),
                   [&](auto* to, void* partial) { bias_gradient_of_rows<T>(stream, dy.view(), to, adds, partial); });
  }
}

}  // namespace

KERNEL_TEST("a bias is added, and its gradient is the sum over images and pixels, also in half precision") {
  // Two slices in packs, without and with gaps between images; three slices without packs; one pixel, as in fully
  // connected ops.
  const std::pair<Shape, std::int64_t> sizes[] = {{{3, 5, 7, 9}, 0},     {{2, 3, 32, 36}, 0}, {{2, 3, 32, 36}, 16},
                                                  {{5, 2, 23, 29}, 0},   {{300, 4, 1, 1}, 4}, {{700, 33, 1, 1}, 0},
                                                  {{5000, 64, 1, 1}, 8}, {{3, 2056, 1, 1}, 0}};
  for (const bool masks : {false, true})
    for (const bool adds : {false, true})
      for (const auto& [shape, gap] : sizes) {
        check_bias<float>(shape, gap, masks, adds);
        check_bias<double>(shape, gap, masks, adds);
        check_bias<F16>(shape, gap, masks, adds);
        check_bias<BF16>(shape, gap, masks, adds);
      }
}

KERNEL_TEST("the gradient of a bias needs memory if channels, or rows of channels, are cut into slices") {
  CHECK(bias_gradient_of_rows_bytes(4, 511) == 4 * sizeof(double));
  CHECK(bias_gradient_of_rows_bytes(4, 512) == 2 * 4 * sizeof(double));
  CHECK(bias_gradient_of_rows_bytes(1 << 15, 1 << 20) == (1 << 15) * sizeof(double));
  CHECK(bias_gradient_bytes(2, 2047) == 0);
  CHECK(bias_gradient_bytes(2, 2048) == 2 * 2 * sizeof(double));
  CHECK(bias_gradient_bytes(4096, 1 << 20) == 0);
}
