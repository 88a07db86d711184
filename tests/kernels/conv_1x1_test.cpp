// Convolutions with 1x1 kernels, with every tile, with and without packs, at the edges of blocks. All numbers are
// whole, so every bit must equal the definition.

#include "kernels/conv/conv_1x1.h"

#include "conv_problem.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"
#include "tiles.h"

using namespace lamina::LAMINA_CUDA_SPACE;

namespace {

struct Sizes {
  int n, c, h, w, k;
  int groups = 1, stride_h = 1, stride_w = 1, gap = 4;
};

/// Checks a convolution with and without a mask and old contents, in one range and in several.
template <class T>
void check_1x1(const Sizes& s, ConvTile tile) {
  INFO(s.n << " images of " << s.c << " x " << s.h << " x " << s.w << ", " << s.k << " filters in " << s.groups
           << " groups, stride " << s.stride_h << "x" << s.stride_w << ", tile " << static_cast<int>(tile));
  const ConvGeometry g{s.groups, 1, 1, s.stride_h, s.stride_w, 0, 0, 1, 1};
  for (const bool masked : {false, true})
    check_all<Conv1x1>(ConvProblem<T>(g, s.n, s.c, s.h, s.w, s.k, masked, s.gap), tile);
}

}  // namespace

namespace lamina::LAMINA_CUDA_SPACE {

void check_1x1_in_packs() {
  for (const ConvTile tile : tiles) {
    check_1x1<float>({1, 16, 8, 8, 32}, tile);     // smaller than a tile
    check_1x1<float>({3, 20, 14, 14, 132}, tile);  // images share tiles; incomplete tiles in all directions
    check_1x1<float>({2, 140, 2, 2, 12}, tile);    // a pack is an image
  }
  check_1x1<float>({1, 4, 56, 56, 4}, ConvTile::automatic);
  check_1x1<double>({3, 18, 3, 6, 66}, ConvTile::automatic);
}

void check_1x1_singly() {
  for (const ConvTile tile : tiles) {
    check_1x1<float>({3, 24, 7, 7, 132}, tile);             // weights in packs, single pixels
    check_1x1<float>({2, 13, 5, 3, 67}, tile);              // single weights and pixels
    check_1x1<float>({5, 9, 1, 1, 3}, tile);                // one pixel
    check_1x1<float>({2, 16, 4, 4, 64, 1, 1, 1, 3}, tile);  // images have different alignments
  }
  check_1x1<double>({3, 7, 7, 7, 65}, ConvTile::automatic);
  check_1x1<double>({2, 6, 3, 3, 8}, ConvTile::automatic);
}

}  // namespace lamina::LAMINA_CUDA_SPACE

KERNEL_TEST("gemm_1x1 equals the definition with packs, at the edges of blocks") { check_1x1_in_packs(); }

KERNEL_TEST("gemm_1x1 equals the definition if planes or tensors have no packs") { check_1x1_singly(); }

KERNEL_TEST("gemm_1x1 equals the definition with groups and strides") {
  for (const ConvTile tile : tiles) {
    check_1x1<float>({2, 48, 6, 6, 24, 3}, tile);
    check_1x1<float>({2, 16, 9, 8, 72, 1, 2, 2}, tile);
    check_1x1<float>({2, 10, 7, 11, 6, 2, 1, 3}, tile);
  }
  check_1x1<double>({2, 6, 5, 7, 4, 2, 2, 1}, ConvTile::automatic);
}

KERNEL_TEST("gemm_1x1 reads only its tensors, at any alignment") {
  // A tensor that is shifted by one element is not aligned.
  const ConvProblem<float> c({1, 1, 1, 1, 1, 0, 0, 1, 1}, 2, 8, 4, 4, 8, false, 4);
  const auto shifted = [](std::vector<float> values) {
    values.insert(values.begin(), 0);
    return Resident<float>(std::move(values));
  };
  const std::vector<float> before(c.dy.values.size(), 77);
  const Resident<float> want(before), w = shifted(c.w.values), x = shifted(c.x.values);
  ConvDirect::forward<float>(tested_stream(), c.g, c.x_view(), c.w.data(), c.y_view(want), {});
  for (const bool move_w : {false, true})
    for (const bool move_x : {false, true})
      for (const bool move_y : {false, true}) {
        INFO("moved: w " << move_w << ", x " << move_x << ", y " << move_y);
        const Resident<float> y = shifted(before);
        View<const float> from = c.x_view();
        if (move_x) from.data = x.data() + 1;
        View<float> to = c.y_view(y);
        to.data += move_y ? 1 : 0;
        Conv1x1::forward<float>(tested_stream(), c.g, from, move_w ? w.data() + 1 : c.w.data(), to, {}, nullptr, 1);
        const std::vector<float> got = y.now();
        const auto first = got.begin() + (move_y ? 1 : 0);
        CHECK(std::vector<float>(first, first + static_cast<std::ptrdiff_t>(before.size())) == want.now());
      }
}

KERNEL_TEST("gemm_1x1 has the same results with any number of ranges") {
  const ConvProblem<float> c({1, 1, 1, 1, 1, 0, 0, 1, 1}, 3, 40, 6, 6, 20, true, 4);
  for (const int ranges : {1, 2, 5, 16}) {
    INFO(ranges << " ranges");
    check_forward<Conv1x1>(c, ConvTile::tile_64x64, false, true, ranges);
    check_data<Conv1x1>(c, ConvTile::tile_64x64, true, ranges);
    check_weights<Conv1x1>(c, ConvTile::tile_64x64, true, ranges);
  }
}

#if defined(LAMINA_CUDA_ON_HOST)
TEST_CASE("gemm_1x1 is the default if its cost model is the lowest, and refuses other convolutions with the reason") {
  using namespace lamina;
  const auto backend = make_backend("cuda-host");
  const auto spec_of = [&](const Conv& op, const Shape& x) {
    return *test::make_spec(*backend, {"", op, {x}}, {.dtype = DType::f32});
  };
  const Choice named{.algorithm = {"gemm_1x1", "gemm_1x1", "gemm_1x1"}};
  const auto first = [&](const Conv& op, int plane, Pass pass) {
    return backend->algorithms(spec_of(op, {2, 32, plane, plane}), pass).front();
  };
  const Conv plain{.channels = 64, .kernel = 1}, strided{.channels = 64, .kernel = 1, .stride = 2};
  for (const Pass pass : {Pass::forward, Pass::backward_data}) {
    CHECK(first(plain, 14, pass) == "gemm_1x1");
    CHECK(first(plain, 7, pass) == "gemm_1x1");
    CHECK(first(strided, 14, pass) == "gemm_1x1");
  }
  CHECK(first(plain, 14, Pass::backward_params) == "gemm_1x1");
  CHECK(first(plain, 7, Pass::backward_params) == "implicit_gemm");  // 7x7 planes have no packs
  CHECK(first(strided, 16, Pass::backward_params) == "implicit_gemm");
  const Spec wide = spec_of(Conv{.channels = 8, .kernel = {1, 3}}, {2, 8, 9, 9});
  CHECK_THROWS_MATCHES(backend->lower(wide, named), Unsupported, Says("1x1 kernels, not 1x3"));
  const Spec padded = spec_of(Conv{.channels = 8, .kernel = 1, .pad = {0, 2}}, {2, 8, 9, 9});
  CHECK_THROWS_WITH(backend->lower(padded, named), ContainsSubstring("no padding, not 0x2"));
  const Spec heavy = spec_of(Conv{.channels = 65536, .kernel = 1}, {1, 65536, 1, 1});
  CHECK_THROWS_WITH(backend->lower(heavy, named), ContainsSubstring("weights of a group, not 4294967296"));
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    for (const std::string& name : backend->algorithms(padded, pass)) CHECK(name != "gemm_1x1");
}
#endif
