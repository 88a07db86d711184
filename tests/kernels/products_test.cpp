// The tiled products with every tile, number of ranges and orientation, at the edges of blocks. All numbers are whole,
// so every bit must equal the definition.

#include "conv_problem.h"
#include "kernels/gemm/gemm.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"
#include "tiles.h"
#if defined(LAMINA_CUDA_ON_HOST)
#include "kernels/conv/conv_schedule.h"
#include "kernels/host/grid.h"
#endif

using namespace lamina::LAMINA_CUDA_SPACE;

namespace {

template <class T>
void check_gemm(int m, int n, int k, bool a_along_k, bool b_along_k, bool adds) {
  INFO(m << " x " << n << " x " << k << ", " << a_along_k << b_along_k << adds);
  const std::vector<T> a = integers<T>(std::int64_t{m} * k, 1), b = integers<T>(std::int64_t{k} * n, 2);
  const std::vector<T> old = integers<T>(std::int64_t{m} * (n + 2), 3);
  const Resident<T> left(a), right(b), got(old);
  GemmProblem<T> p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = left.data();
  p.a_m = a_along_k ? k : 1;
  p.a_k = a_along_k ? 1 : m;
  p.b = right.data();
  p.b_k = b_along_k ? 1 : n;
  p.b_n = b_along_k ? k : 1;
  p.c_m = n + 2;
  p.c_n = 1;
  p.adds = adds;
  std::vector<T> want = old;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      T sum = adds ? old[static_cast<std::size_t>(i * p.c_m + j)] : T(0);
      for (int l = 0; l < k; ++l)
        sum += a[static_cast<std::size_t>(i * p.a_m + l * p.a_k)] * b[static_cast<std::size_t>(l * p.b_k + j * p.b_n)];
      want[static_cast<std::size_t>(i * p.c_m + j)] = sum;
    }
  p.c = got.data();
  const Resident<T> partial = scratch<T>(gemm_partial_bytes<T>(m, n, k));
  gemm<T>(tested_stream(), p, partial.data());
  CHECK(got.now() == want);
}

template <class T>
void check_implicit(const ConvProblem<T>& c, ConvTile tile) {
  check_all<ConvImplicitGemm>(c, tile);
}

}  // namespace

namespace lamina::LAMINA_CUDA_SPACE {

void check_implicit_gemm_at_edges() {
  for (const ConvTile tile : tiles) {
    INFO("tile " << static_cast<int>(tile));
    // One filter and a few pixels more than a block; a depth that is not a multiple of a tile's depth.
    check_implicit<float>({{1, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 3, 12, 11, 129, true}, tile);
    check_implicit<float>({{2, 1, 1, 1, 1, 0, 0, 1, 1}, 2, 18, 9, 8, 130}, tile);
    for (const bool masked : {false, true})
      check_implicit<float>({{1, 3, 2, 2, 3, 1, 0, 1, 1}, 2, 5, 13, 14, 6, masked}, tile);
  }
  check_implicit<double>({{1, 3, 2, 2, 3, 1, 0, 1, 1}, 2, 5, 13, 14, 6, true}, ConvTile::automatic);
}

void check_implicit_gemm_by_taps() {
  for (const ConvTile tile : tiles) {
    INFO("tile " << static_cast<int>(tile));
    // The channels and filters of a group are multiples of the depth of every tile's step. The last block has few
    // pixels or rows.
    check_implicit<float>({{1, 3, 2, 1, 1, 1, 1, 1, 2}, 2, 16, 8, 10, 144, true, 4}, tile);
    check_implicit<float>({{2, 1, 1, 1, 1, 0, 0, 1, 1}, 3, 64, 6, 8, 32, false, 8}, tile);
    for (const bool masked : {false, true})
      check_implicit<float>({{1, 3, 3, 2, 2, 1, 1, 1, 1}, 2, 16, 9, 7, 16, masked}, tile);
    check_implicit<float>({{1, 2, 2, 1, 1, 1, 0, 1, 1}, 1, 48, 5, 9, 24, false, 1}, tile);
  }
  check_implicit<double>({{2, 3, 3, 1, 1, 1, 1, 1, 1}, 2, 16, 6, 6, 32, true, 2}, ConvTile::automatic);
  check_implicit<double>({{1, 3, 3, 2, 2, 1, 1, 1, 1}, 2, 16, 9, 7, 16, true}, ConvTile::automatic);
}

void check_gemm_tiles() {
  for (const bool a_along_k : {false, true})
    for (const bool b_along_k : {false, true}) {
      check_gemm<float>(67, 70, 19, a_along_k, b_along_k, false);
      check_gemm<float>(130, 3, 21, a_along_k, b_along_k, true);
      check_gemm<double>(65, 66, 9, a_along_k, b_along_k, true);
      check_gemm<double>(5, 17, 300, a_along_k, b_along_k, false);
      check_gemm<float>(9, 16, 1030, a_along_k, b_along_k, true);
      check_gemm<float>(131 * 128 + 1, 65, 9, a_along_k, b_along_k, true);  // enough blocks for the largest tile
    }
  check_gemm<float>(1, 1, 1, true, true, false);
}

}  // namespace lamina::LAMINA_CUDA_SPACE

KERNEL_TEST("implicit gemm equals the definition with every tile, at the edges of blocks") {
  check_implicit_gemm_at_edges();
}

KERNEL_TEST("implicit gemm equals the definition with steps of one tap, and if packs of pixels are written") {
  check_implicit_gemm_by_taps();
}

KERNEL_TEST("implicit gemm equals the definition with strides, dilation, groups and padding, in both types") {
  for (const int stride : {1, 2, 3, 4})
    for (const int dilation : {1, 2, 3}) {
      INFO("stride " << stride << ", dilation " << dilation);
      check_implicit<double>({{2, 3, 2, stride, 1, 2, 1, dilation, 1}, 2, 4, 11, 7, 6, true}, ConvTile::automatic);
      check_implicit<float>({{1, 2, 3, 1, stride, 0, 3, 2, dilation}, 1, 3, 8, 13, 5}, ConvTile::automatic);
    }
  check_implicit<float>({{260, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 260, 4, 5, 260, true},
                        ConvTile::automatic);  // one filter per group
  // Some pixels are read by no window: after the last window, and between windows if the stride exceeds the kernel.
  check_implicit<float>({{1, 1, 1, 3, 3, 0, 0, 1, 1}, 2, 2, 9, 9, 3}, ConvTile::automatic);
  check_implicit<float>({{1, 1, 1, 3, 3, 0, 0, 1, 1}, 2, 2, 9, 9, 3, true}, ConvTile::automatic);
}

KERNEL_TEST("implicit gemm's data gradient with any strides equals the definition") {
  const auto check = [](const auto& c, int splits) {
    INFO("stride " << c.g.stride_h << 'x' << c.g.stride_w << ", " << splits << " ranges");
    for (const bool adds : {false, true}) check_data<ConvImplicitGemm>(c, ConvTile::automatic, adds, splits);
  };
  for (const int splits : {0, 1, 2, 3, 5}) {
    // arguments: kernel, stride, pad, dilation
    check(ConvProblem<float>({1, 3, 3, 2, 2, 1, 1, 1, 1}, 2, 5, 9, 12, 16, true), splits);
    check(ConvProblem<float>({1, 1, 1, 2, 2, 0, 0, 1, 1}, 2, 5, 9, 12, 24),
          splits);  // three residue classes without taps
    check(ConvProblem<float>({2, 3, 3, 2, 1, 1, 1, 1, 1}, 2, 4, 9, 8, 10, true), splits);
    check(ConvProblem<float>({1, 5, 4, 3, 2, 2, 1, 1, 1}, 1, 3, 14, 11, 7), splits);
    check(ConvProblem<float>({1, 3, 3, 2, 3, 2, 2, 2, 2}, 1, 3, 13, 14, 8, true),
          splits);  // with dilation 2, half of the residue classes have no taps
    // the kernel is smaller than the stride
    check(ConvProblem<double>({2, 2, 3, 3, 4, 1, 0, 1, 2}, 2, 6, 11, 13, 16), splits);
    check(ConvProblem<float>({1, 7, 7, 4, 4, 3, 3, 1, 1}, 1, 3, 17, 18, 16), splits);
    check(ConvProblem<float>({1, 1, 2, 7, 7, 0, 0, 1, 1}, 1, 2, 15, 16, 6), splits);   // 49 residue classes
    check(ConvProblem<float>({1, 3, 3, 4, 5, 1, 1, 1, 1}, 1, 2, 3, 23, 130), splits);  // fewer rows than the stride
  }
  check(ConvProblem<float>({1, 3, 3, 2, 2, 1, 1, 1, 1}, 3, 70, 19, 21, 16, true),
        0);  // residue classes of several blocks
}

#if defined(LAMINA_CUDA_ON_HOST)
TEST_CASE("implicit gemm's data gradient with strides is one launch, and ranges add one launch that sums them") {
  const auto launches = [](const ConvProblem<float>& c, int splits) {
    const auto count = [](const char* name) {
      const auto all = host::kernels_run();
      const auto found = all.find(name);
      return found == all.end() ? std::uint64_t{0} : found->second;
    };
    const std::uint64_t products = count("conv_gather_product_kernel"), sums = count("conv_gather_sum_kernel");
    check_data<ConvImplicitGemm>(c, ConvTile::automatic, false, splits);
    return std::pair(count("conv_gather_product_kernel") - products, count("conv_gather_sum_kernel") - sums);
  };
  const auto strided = [](int down, int across) {
    return ConvProblem<float>({1, 3, 3, down, across, 1, 1, 1, 1}, 1, 2, 15, 16, 8);
  };
  using Count = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(launches(strided(1, 1), 1) == Count(1, 0));
  CHECK(launches(strided(2, 2), 1) == Count(1, 0));
  CHECK(launches(strided(2, 2), 3) == Count(1, 1));
  CHECK(launches(strided(3, 2), 2) == Count(1, 1));
  CHECK(launches(strided(4, 4), 1) == Count(1, 0));
  CHECK(launches(strided(4, 5), 1) == Count(2, 0));  // 20 residue classes, 16 per launch
  CHECK(launches(strided(7, 7), 1) == Count(4, 0));
}
#endif

KERNEL_TEST("implicit gemm computes its taps in every block, even if all blocks have the same taps") {
  // One step has all channels, so taps that an earlier block left would also be correct.
  const ConvProblem<float> c({1, 1, 1, 1, 1, 0, 0, 1, 1}, 2, 3, 17, 19, 5);
  check_forward<ConvImplicitGemm>(c, ConvTile::tile_64x64, false, false);
  check_data<ConvImplicitGemm>(c, ConvTile::tile_64x64, false);
}

KERNEL_TEST("implicit gemm's weight gradient has the same results with any number of ranges") {
  const ConvProblem<float> c({1, 3, 3, 1, 1, 1, 1, 1, 1}, 3, 2, 9, 10, 4, true);
  for (const int splits : {1, 2, 5, 17, 40}) {
    INFO(splits << " ranges");
    check_weights<ConvImplicitGemm>(c, ConvTile::tile_64x64, true, splits);
    check_weights<ConvImplicitGemm>(c, ConvTile::tile_64x64, false, splits);
  }
}

KERNEL_TEST("gemm equals the definition in every orientation and tile") { check_gemm_tiles(); }

#if defined(LAMINA_CUDA_ON_HOST)
TEST_CASE("sums are cut into ranges if this fills the multiprocessors of a large device") {
  // The time of a block is proportional to its share of the sum. A multiprocessor runs one block at a time.
  const ConvTileCost costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 4000, 0, 1},
                                 {ConvTile::tile_64x128, 64, 128, 8, 2000, 0, 1},
                                 {ConvTile::tile_64x64, 64, 64, 8, 1000, 0, 1}};
  const auto cut = [&](std::int64_t results, std::int64_t columns, std::int64_t depth) {
    return conv_schedule_for({results, columns, 1, depth, 512, 256}, costs, ConvTile::tile_128x128, 0).ranges;
  };
  // 144 blocks are two rounds of 132. In 11 ranges they are 12 full rounds.
  CHECK(cut(512, 4608, 100000) == 11);
  CHECK(cut(512, 4608, 1023) == 1);    // a range has at least 512 terms
  CHECK(cut(512, 4224, 100000) == 1);  // 132 blocks are one round
  CHECK(cut(128, 128, 100000) == 132);
  CHECK(cut(128, 128, 512 * 100) == 100);
  // A launch may have several parts. The deepest part comes first, and the ranges of the other parts are about as long
  // as the ranges of the deepest part.
  CHECK(ranges_of(400, 400, 5) == 5);
  CHECK(ranges_of(200, 400, 5) == 3);
  CHECK(ranges_of(0, 400, 5) == 1);
  CHECK(ranges_of(0, 0, 5) == 1);
  const ConvPart parts[3] = {{132 * 128, 8 * 10}, {132 * 128, 8 * 5}, {66 * 128, 0}};
  const ConvSize size{128, 0, 1, 0, 512, 256};
  const ConvTileCost two[3] = {{ConvTile::tile_128x128, 128, 128, 8, 400, 30, 2}, costs[1], costs[2]};
  // The busiest multiprocessor has three blocks: of 10 steps, of 5 steps, and without steps.
  CHECK(cycles_of(size, parts, 3, two[0], 1) == 10 * 700 + 2 * 30 + 30);
  CHECK(cycles_of(size, parts, 3, costs[0], 1) == (10 + 5) * 4000);
  CHECK(conv_schedule_for(size, parts, 3, costs, ConvTile::tile_128x128, 0).cycles == (10 + 5) * 4000);
  // With few results a small tile is chosen. A given number of ranges is kept.
  CHECK(conv_schedule_for({64, 10000, 1, 64, 512, 256}, costs, ConvTile::automatic, 0).tile != ConvTile::tile_128x128);
  CHECK(conv_schedule_for({512, 4608, 1, 100000, 512, 256}, costs, ConvTile::automatic, 5).ranges == 5);
}

TEST_CASE("implicit gemm refuses groups with too many weights for 31 bits, and says how many there are") {
  using namespace lamina;
  const auto backend = make_backend("cuda-host");
  const auto spec_of = [&](int groups) {
    const Conv op{.channels = 65536, .kernel = 3, .pad = 1, .groups = groups};
    return *test::make_spec(*backend, {"", op, {{1, 8192, 3, 3}}}, {.dtype = DType::f32});
  };
  const Choice choice{.algorithm = {"", "", "implicit_gemm"}};
  CHECK_THROWS_MATCHES(backend->lower(spec_of(1), choice), Unsupported,
                       Says("2147483520 weights of a group, not 4831838208"));
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    for (const std::string& name : backend->algorithms(spec_of(1), pass)) CHECK(name != "implicit_gemm");
  CHECK(backend->lower(spec_of(4), choice).steps.back().algorithm == "implicit_gemm");
}
#endif
