// Transposition compared with plain indexing: several tiles in both directions, gaps that must not be read, and every
// pair of types.

#include "kernels/moves/moves.h"

#include "tests/kernels/gapped.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using namespace lamina::cuda_host;

namespace {

/// Checks the transposition of `count` matrices, whose numbers are exact in every type.
template <class From, class To>
void check(int count, int rows, int columns, int gap) {
  INFO(count << " of " << rows << " x " << columns << ", gap " << gap);
  const std::int64_t pitch = columns + gap, to_pitch = rows + gap;
  std::vector<From> from(static_cast<std::size_t>(count * rows * pitch));
  std::vector<To> got(static_cast<std::size_t>(count * columns * to_pitch));
  std::fill(got.begin(), got.end(), stored<To>(-1));
  Values want(got.size(), -1);
  const auto number = [&](std::int64_t i) { return static_cast<double>(i * 7 % 251); };  // exact in every type
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = stored<From>(number(static_cast<std::int64_t>(i)));
  for (int n = 0; n < count; ++n)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        want[static_cast<std::size_t>((std::int64_t{n} * columns + c) * to_pitch + r)] =
            number((std::int64_t{n} * rows + r) * pitch + c);
  transpose<From, To>(nullptr, {from.data(), count, rows, columns, pitch, rows * pitch},
                      {got.data(), count, columns, rows, to_pitch, columns * to_pitch});
  int different = 0;
  for (std::size_t i = 0; i < got.size(); ++i) different += number_of(got[i]) != want[i];
  CHECK(different == 0);
}

template <class From, class To>
void check_all() {
  for (const int gap : {0, 3}) {
    check<From, To>(1, 1, 1, gap);
    check<From, To>(3, 70, 45, gap);
    check<From, To>(2, 32, 64, gap);
    check<From, To>(4, 5, 33, gap);
  }
}

}  // namespace

TEST_CASE("transpose turns columns into rows, for every pair of types") {
  check_all<float, float>();
  check_all<F16, F16>();
  check_all<BF16, BF16>();
  check_all<F16, float>();
  check_all<float, F16>();
  check_all<BF16, float>();
  check_all<float, BF16>();
}
