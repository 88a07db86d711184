// The emulator that runs CUDA kernels on the host. Correct kernels have exact results in every order of blocks and
// threads. Misuse is an error that names the kernel, the block and the thread.

#include <thread>

#include "emulator_kernels.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using namespace lamina::cuda_host;
using namespace lamina::cuda_host::trial;

namespace {

/// Calls `body` in each order of blocks and threads, then restores the ascending order.
template <class Body>
void in_every_order(Body body) {
  for (const host::Order order : {host::Order::ascending, host::Order::descending, host::Order::shuffled}) {
    host::set_thread_order(order, 1);
    body();
  }
  host::set_thread_order(host::Order::ascending);
}

template <bool synced>
std::vector<double> product(int m, int n, int k) {
  std::vector<double> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      c(static_cast<std::size_t>(m * n), -1);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 11) - 5;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 5 % 13) - 6;
  const auto tiles = [](int size) { return static_cast<unsigned>((size + 7) / 8); };
  launch(LAMINA_KERNEL(tiled_product_kernel<double, synced>), dim3(tiles(n), tiles(m)), dim3(8, 8), 0, nullptr, m, n, k,
         a.data(), b.data(), c.data());
  return c;
}

std::vector<double> naive_product(int m, int n, int k) {
  std::vector<double> c;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += ((row * k + i) * 7 % 11 - 5) * ((i * n + column) * 5 % 13 - 6);
      c.push_back(sum);
    }
  return c;
}

}  // namespace

TEST_CASE("a tiled product of odd sizes is exact in every order of threads") {
  in_every_order([] { CHECK(product<true>(19, 21, 37) == naive_product(19, 21, 37)); });
}

TEST_CASE("without its second barrier the tiled product differs between the orders of threads") {
  std::vector<std::vector<double>> results;
  in_every_order([&] { results.push_back(product<false>(19, 21, 37)); });
  CHECK(std::any_of(results.begin(), results.end(), [&](const auto& c) { return c != results.front(); }));
}

TEST_CASE("sums through warps and blocks are exact in every order of threads") {
  std::vector<int> x(10007);
  std::iota(x.begin(), x.end(), -300);
  const int want = std::accumulate(x.begin(), x.end(), 0);
  in_every_order([&] {
    std::vector<int> sums(5);
    launch(LAMINA_KERNEL(sum_kernel), 5, 256, 0, nullptr, static_cast<int>(x.size()), x.data(), sums.data());
    CHECK(std::accumulate(sums.begin(), sums.end(), 0) == want);
  });
}

TEST_CASE("each thread of a kernel without barriers runs once") {
  std::vector<double> x(1001), y(1001, 1);
  std::iota(x.begin(), x.end(), 0.0);
  launch(LAMINA_KERNEL(axpy_kernel), 8, 128, 0, nullptr, 1001, 2.0, x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 1 + 2 * static_cast<double>(i));
}

TEST_CASE("in grids and blocks with three axes every thread runs once") {
  std::vector<int> places(2 * 3 * 4 * 5 * 3 * 2), want(places.size());
  std::iota(want.begin(), want.end(), 0);
  launch(LAMINA_KERNEL(places_kernel), dim3(2, 3, 4), dim3(5, 3, 2), 0, nullptr, places.data());
  CHECK(places == want);
}

TEST_CASE("dynamic shared memory begins as NaN in every block") {
  std::vector<float> x(96);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<int> clean(3);
  launch(LAMINA_KERNEL(reverse_kernel), 3, 32, 32 * sizeof(float), nullptr, 0, x.data(), clean.data());
  CHECK(clean == std::vector<int>{1, 1, 1});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t block = i / 32;
    CHECK(x[i] == static_cast<float>(block * 32 + 31 - i % 32));
  }
}

TEST_CASE("static shared memory begins as NaN in every block, even if an earlier block wrote it") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    in_every_order([&] {
      std::vector<T> y(5 * 32, zero);
      std::vector<int> written(5);
      launch(LAMINA_KERNEL(left_by_former_block_kernel<T>), 5, 32, 0, nullptr, y.data(), written.data());
      for (std::size_t i = 0; i < y.size(); ++i) CHECK((i < 32 ? y[i] == T(5) : std::isnan(y[i])));
      CHECK(written == std::vector<int>{5, -1, -1, -1, -1});
    });
  };
  check(0.0F);
  check(0.0);
  check(0.0F);  // the memory is NaN again in the next launch
}

TEST_CASE("static shared memory keeps its contents within a block") {
  in_every_order([] {
    std::vector<int> y(3 * 32);
    launch(LAMINA_KERNEL(counting_kernel), 3, 32, 0, nullptr, 4, y.data());
    CHECK(y == std::vector<int>(3 * 32, 4));
  });
}

TEST_CASE("a kernel whose blocks read what other blocks write differs between orders of blocks") {
  std::vector<std::vector<int>> results;
  in_every_order([&] {
    std::vector<int> x(7 * 32);
    std::iota(x.begin(), x.end(), 0);
    launch(LAMINA_KERNEL(shift_in_place_kernel), 7, 32, 0, nullptr, x.data());
    results.push_back(x);
  });
  CHECK(results[1] != results[0]);
  CHECK(results[2] != results[0]);
  CHECK(results[2] != results[1]);
}

TEST_CASE("each block runs once, in ascending, descending or shuffled order") {
  const auto turns = [](host::Order order, std::uint64_t seed = 0) {
    std::vector<int> turn(2 * 3 * 4, -1);
    int count = 0;
    host::set_thread_order(order, seed);
    launch(LAMINA_KERNEL(block_turns_kernel), dim3(2, 3, 4), 32, 0, nullptr, &count, turn.data());
    host::set_thread_order(host::Order::ascending);
    return turn;
  };
  std::vector<int> want(2 * 3 * 4);
  std::iota(want.begin(), want.end(), 0);
  CHECK(turns(host::Order::ascending) == want);
  CHECK(turns(host::Order::descending) == std::vector<int>(want.rbegin(), want.rend()));
  std::vector<int> shuffled = turns(host::Order::shuffled, 1);
  CHECK(shuffled == turns(host::Order::shuffled, 1));
  CHECK(shuffled != turns(host::Order::shuffled, 2));
  CHECK(shuffled != want);
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == want);
}

TEST_CASE("votes and shuffles within half a warp are correct in every order of threads") {
  in_every_order([] {
    std::vector<unsigned> votes(5);
    launch(LAMINA_KERNEL(votes_kernel), 1, 32, 0, nullptr, votes.data());
    CHECK(votes == std::vector<unsigned>{0x55555555U, 1, 0, 1, 29});
  });
}

TEST_CASE("misuse of barriers, masks and widths is an error that names the kernel") {
  struct Misuse {
    void (*kernel)();
    const char* name;
    std::vector<std::string> says;
    unsigned threads = 32;
  };
  const std::vector<Misuse> all = {
      {LAMINA_KERNEL(early_return_kernel), {"block (0, 0, 0)", "thread (3, 0, 0)", "returned before the barrier"}},
      {LAMINA_KERNEL(two_barriers_kernel), {"divergent barrier", "at line"}},
      {LAMINA_KERNEL(barrier_or_warp_kernel),
       {"waits at __syncwarp for lane 0", "waits at the barrier of line", " of emulator_kernels.h"}},
      {LAMINA_KERNEL(two_files_kernel), {"divergent barrier", "line 7 of one.h", "line 7 of two.h"}},
      {LAMINA_KERNEL(half_shuffle_kernel), {"__shfl_xor_sync for lane 16 of its mask", "has returned"}},
      {LAMINA_KERNEL(outside_mask_kernel), {"thread (0, 0, 0)", "leaves out the calling lane 0"}},
      {LAMINA_KERNEL(beyond_mask_kernel), {"__shfl_sync reads lane 16, which its mask leaves out"}},
      {LAMINA_KERNEL(short_block_kernel),
       {"waits at __syncwarp for lane 20 of its mask, which the block does not have"},
       20},
      {LAMINA_KERNEL(odd_width_kernel), {"__shfl_down_sync with width 24", "a power of two up to 32"}},
      {LAMINA_KERNEL(two_widths_kernel), {"width 16", "8", "lane"}}};
  for (const Misuse& misuse : all)
    in_every_order([&] {
      const std::string text =
          said_by<LaunchError>([&] { launch(misuse.kernel, misuse.name, 1, misuse.threads, 0, nullptr); });
      CHECK_THAT(text, ContainsSubstring(misuse.name));
      for (const std::string& part : misuse.says) CHECK_THAT(text, ContainsSubstring(part));
    });
}

TEST_CASE("an exception in a kernel ends its launch, and the next launch runs") {
  in_every_order([] {
    CHECK_THROWS_MATCHES(launch(LAMINA_KERNEL(throwing_kernel), 1, 32, 0, nullptr), LaunchError,
                         Says("throwing_kernel", "thread (2, 0, 0)", "exception"));
    CHECK(product<true>(9, 9, 9) == naive_product(9, 9, 9));
  });
}

TEST_CASE("launches that no GPU supports are refused with their shape") {
  const auto refused = [](dim3 grid, dim3 block, std::size_t bytes, const auto&... says) {
    int place = 0;
    CHECK_THROWS_MATCHES(launch(LAMINA_KERNEL(places_kernel), grid, block, bytes, nullptr, &place), LaunchError,
                         Says(says...));
  };
  refused(1, 1025, 0, "places_kernel", "block 1025x1x1", "at most 1024 threads");
  refused(1, 0, 0, "nothing to run");
  refused(0, 1, 0, "nothing to run");
  refused(dim3(1, 65536), 1, 0, "grid 1x65536x1");
  refused(1, 1, 227 * 1024 + 1, "232449 bytes");
}

TEST_CASE("launches of several host threads run one after another") {
  std::vector<double> results[2];
  std::thread other([&] { results[0] = product<true>(30, 30, 30); });
  results[1] = product<true>(30, 30, 30);
  other.join();
  CHECK(results[0] == results[1]);
}

TEST_CASE("the emulator knows the names of the kernels that ran") {
  product<true>(2, 2, 2);
  CHECK(host::kernels_run().count("tiled_product_kernel") == 1);
  CHECK(host::kernels_run().count("beyond_global_kernel") == 0);
}

#if !defined(LAMINA_SANITIZED)  // the address sanitizer would end the process
TEST_CASE("a write beyond dynamic shared memory is an error") {
  std::vector<float> x(32);
  int clean = 0;
  CHECK_THROWS_MATCHES(launch(LAMINA_KERNEL(reverse_kernel), 1, 32, 32 * sizeof(float), nullptr, 1, x.data(), &clean),
                       LaunchError, Says("reverse_kernel", "beyond its 128 bytes of dynamic shared memory"));
}
#endif
