// The kernels that time a device, on the host: the multiply-adds of the peak, bit by bit, and the delay.

#include <chrono>

#include "kernels/timing/delay.h"
#include "kernels/timing/peak.h"
#include "tests/support/catch.h"

using namespace lamina::cuda_host;

namespace {

template <class T>
void check_peak(int blocks, int rounds) {
  const T a = T(-0.9999), b = T(0.7);
  std::vector<T> out(static_cast<std::size_t>(blocks) * peak_threads, T(-1));
  peak<T>(nullptr, out.data(), blocks, rounds, a, b);
  for (const std::size_t thread : {std::size_t{0}, std::size_t{31}, std::size_t{100}, out.size() - 1}) {
    CAPTURE(thread, rounds);
    CHECK(out[thread] == peak_result(static_cast<std::int64_t>(thread), rounds, a, b));
  }
  CHECK(out[0] != out[1]);
}

}  // namespace

TEMPLATE_TEST_CASE("the kernel of the peak computes every multiply-add that is counted", "", float, double) {
  check_peak<TestType>(1, 1);
  check_peak<TestType>(2, 3);
  // A different number of steps gives a different result, so the compiler cannot remove steps unnoticed.
  const TestType a = TestType(-0.9999), b = TestType(0.7);
  CHECK(peak_result<TestType>(7, 1, a, b) != peak_result<TestType>(7, 2, a, b));
  CHECK(peak_result<TestType>(7, 100, a, b) != peak_result<TestType>(7, 101, a, b));
  CHECK(peak_flops_per_round(3) == 2.0 * 3 * 256 * 8 * 32);
}

TEST_CASE("each chain of the peak's kernel computes x = x a + b from its own start") {
  // Thread 33 by hand: it multiplies by a + 1 / 65536 and adds b + 1 / 65536. Chain i begins at 33 / 1024 + i / 16.
  double sum = 0;
  for (int chain = 0; chain < 8; ++chain) {
    double x = 33.0 / 1024 + chain / 16.0;
    for (int step = 0; step < 32; ++step) x = std::fma(x, 0.5 + 1.0 / 65536, 0.25 + 1.0 / 65536);
    sum += x;
  }
  CHECK(peak_result<double>(33, 1, 0.5, 0.25) == sum);
}

TEST_CASE("a delay takes as long as asked, and a delay of 0 or less returns at once") {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  delay(nullptr, 3'000'000);  // nanoseconds, on the host
  const std::chrono::duration<double> took = Clock::now() - start;
  CHECK(took.count() >= 3e-3);
  CHECK(took.count() < 3);
  CHECK_NOTHROW(delay(nullptr, 0));
  CHECK_NOTHROW(delay(nullptr, -5));
}
