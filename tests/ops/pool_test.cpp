// Max, average and global average pooling.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

struct Geometry {
  std::string name;
  Size window, stride, pad;
  Rounding rounding;
  Shape x;
};

const std::vector<Geometry> geometries = {
    {"2x2", 2, 2, 0, Rounding::down, {2, 3, 6, 8}},
    {"2x2, last row and column left out", 2, 2, 0, Rounding::down, {2, 2, 5, 7}},
    {"2x2, rounded up", 2, 2, 0, Rounding::up, {2, 2, 5, 7}},
    {"3x3, stride 2", 3, 2, 0, Rounding::down, {2, 3, 7, 9}},
    {"3x3, stride 2, padded", 3, 2, 1, Rounding::down, {2, 3, 6, 7}},
    {"3x3, stride 2, padded, rounded up", 3, 2, 1, Rounding::up, {1, 3, 6, 8}},
    {"3x3, stride 2, rounded up, as AlexNet", 3, 2, 0, Rounding::up, {2, 2, 6, 8}},
    {"3x3, stride 1, padded, as Inception", 3, 1, 1, Rounding::down, {2, 3, 4, 5}},
    {"a last window beyond the image is dropped", 2, 3, 1, Rounding::up, {1, 2, 4, 7}},
    {"rectangular", {3, 2}, {1, 3}, {1, 0}, Rounding::up, {2, 2, 5, 7}},
    {"stride beyond window", {1, 2}, {2, 3}, 0, Rounding::down, {1, 3, 6, 8}},
    {"a huge stride, so one window", 2, 1 << 28, 1, Rounding::down, {1, 2, 3, 4}},
    {"the whole map", {4, 5}, 1, 0, Rounding::down, {3, 2, 4, 5}},
    {"a window of more than 256 cells", {16, 17}, {2, 3}, 0, Rounding::down, {1, 1, 19, 21}},
    {"1x1", 1, 1, 0, Rounding::down, {2, 2, 3, 3}},
    {"many channels", 2, 1, 1, Rounding::up, {1, 19, 3, 3}},
    {"3x3, stride 2, vectors of windows", 3, 2, 1, Rounding::down, {1, 2, 9, 35}},
    {"3x3, stride 3, vectors of windows", 3, 3, 1, Rounding::down, {1, 2, 7, 32}},
    {"3x3, stride 1, vectors of windows", 3, 1, 1, Rounding::up, {1, 2, 5, 19}},
};

std::vector<Case> max_cases() {
  std::vector<Case> cases;
  for (const auto& [name, window, stride, pad, rounding, x] : geometries)
    for (const Mode mode : {Mode::training, Mode::inference})
      cases.push_back({name, MaxPool{window, stride, pad, rounding}, {x}, {}, mode});
  return cases;
}

std::vector<Case> average_cases() {
  std::vector<Case> cases;
  for (const auto& [name, window, stride, pad, rounding, x] : geometries)
    for (const bool count_padding : {false, true})
      for (const Mode mode : {Mode::training, Mode::inference})
        cases.push_back({name, AveragePool{window, stride, pad, rounding, count_padding}, {x}, {}, mode});
  return cases;
}

const std::vector<Case> global_cases = {
    {"7x7", GlobalAveragePool{}, {{2, 3, 7, 7}}},
    {"rectangular", GlobalAveragePool{}, {{3, 5, 2, 9}}},
    {"one pixel", GlobalAveragePool{}, {{2, 4, 1, 1}}},
    {"inference", GlobalAveragePool{}, {{2, 3, 5, 4}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("max pool, by hand: overlapping windows") {
  //  1 5 2      windows of 2, stride 1: 5 wins both windows above, 6 wins below left, 7 below right
  //  3 0 4
  //  6 1 7
  const Case c{"", MaxPool{.window = 2, .stride = 1}, {{1, 1, 3, 3}}};
  check_example(c, {{{1, 5, 2, 3, 0, 4, 6, 1, 7}}, {}, {}, {1, 2, 3, 4}},
                {{5, 5, 6, 7}, {{0, 1 + 2, 0, 0, 0, 0, 3, 0, 4}}});
}

TEST_CASE("max pool, by hand: pairs along a long row") {
  Values x(36), dx(36), y(18), dy(18);
  for (std::size_t q = 0; q < y.size(); ++q) {
    x[2 * q] = static_cast<double>(2 * q);
    x[2 * q + 1] = y[q] = static_cast<double>(2 * q + 1);
    dx[2 * q + 1] = dy[q] = static_cast<double>(q + 1);
  }
  check_example({"", MaxPool{.window = {1, 2}, .stride = {1, 2}}, {{1, 1, 1, 36}}}, {{x}, {}, {}, dy}, {y, {dx}});
}

TEST_CASE("max pool passes the gradient to the first maximum only") {
  const Case c{"", MaxPool{.window = 2, .stride = 2}, {{1, 1, 2, 4}}};
  if (decided_by_library()) {  // the library may choose any of the maxima, but only one
    const Result got = run_case(c, {{{3, 3, 1, 2, 3, 3, 2, 2}}, {}, {}, {5, 7}}, {.dtype = DType::f32});
    CHECK(got.y == Values{3, 2});
    for (const auto& [cells, dy] : {std::pair{std::array{0, 1, 4, 5}, 5.0}, {std::array{2, 3, 6, 7}, 7.0}}) {
      int winners = 0;
      for (const int cell : cells) {
        const double dx = got.dx[0][static_cast<std::size_t>(cell)];
        CHECK((dx == 0 || (dx == dy && cell != 2)));  // cell 2 holds 1, which is no maximum
        winners += dx != 0 ? 1 : 0;
      }
      CHECK(winners == 1);
    }
    return;
  }
  check_example(c, {{{3, 3, 1, 2, 3, 3, 2, 2}}, {}, {}, {5, 7}}, {{3, 2}, {{5, 0, 0, 7, 0, 0, 0, 0}}});
}

TEST_CASE("max pool, by hand: padding never wins, even over negative numbers") {
  const Case c{"", MaxPool{.window = 3, .stride = 2, .pad = 1}, {{1, 1, 2, 2}}};
  check_example(c, {{{-4, -3, -2, -1}}, {}, {}, {5}}, {{-1}, {{0, 0, 0, 5}}});
}

TEST_CASE("max pool, by hand: rounding up adds a window, rounding down does not") {
  check_example({"", MaxPool{.window = {1, 2}, .stride = 2, .rounding = Rounding::up}, {{1, 1, 1, 3}}},
                {{{1, 2, 3}}, {}, {}, {5, 7}}, {{2, 3}, {{0, 5, 7}}});
  check_example({"", MaxPool{.window = {1, 2}, .stride = 2}, {{1, 1, 1, 3}}}, {{{1, 2, 3}}, {}, {}, {5}},
                {{2}, {{0, 5, 0}}});
}

TEST_CASE("a NaN is the maximum of a max pool's window") {
  // There are three windows of 2 x 2. The first window begins with a NaN, the second ends with a NaN, the third has no
  // NaN.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case c{"", MaxPool{.window = 2, .stride = 2}, {{1, 1, 2, 6}}};
  Feed feed = make_feed(c, 1);
  feed.x[0] = {nan, 9, 1, 2, 5, 6, 3, 4, 3, nan, 7, 8};
  for (const DType dtype : element_types()) {
    const Values y = run_case(c, feed, {.dtype = dtype}).y;
    REQUIRE(y.size() == 3);
    CHECK(std::isnan(y[0]));
    CHECK(std::isnan(y[1]));
    CHECK(y[2] == 8);
  }
}

TEST_CASE("average pool, by hand: the divisor with and without padding") {
  // Columns, or rows, are padded by 1, so the windows are (pad, 6) and (9, pad).
  const Feed feed{{{6, 9}}, {}, {}, {2, 4}};
  for (const Size window : {Size(1, 2), Size(2, 1)}) {
    AveragePool op{.window = window, .stride = 2, .pad = {window.h - 1, window.w - 1}};
    const Shape x{1, 1, window.h, window.w};
    check_example({"", op, {x}}, feed, {{6, 9}, {{2, 4}}});
    op.count_padding = true;
    check_example({"", op, {x}}, feed, {{3, 4.5}, {{1, 2}}});
  }
}

TEST_CASE("average pool, by hand: cells beyond the padding are not counted") {
  // With rounding up, the last window of 2 holds only x[2], so it is divided by 1 in both cases.
  for (const bool count_padding : {false, true})
    check_example({"",
                   AveragePool{.window = {1, 2}, .stride = 2, .rounding = Rounding::up, .count_padding = count_padding},
                   {{1, 1, 1, 3}}},
                  {{{1, 2, 5}}, {}, {}, {2, 3}}, {{1.5, 5}, {{1, 1, 3}}});
}

TEST_CASE("global average pool, by hand") {
  check_example({"", GlobalAveragePool{}, {{1, 2, 1, 2}}}, {{{1, 3, 10, 20}}, {}, {}, {4, 6}},
                {{2, 15}, {{2, 2, 3, 3}}});
}

TEST_CASE("a mean of millions of cells is as exact as a mean of a few thousand cells") {
  if (decided_by_library()) return;
  const Shape x{1, 1, 2048, 2048};  // a simple sum of 0.1 in f32 would be wrong by up to a per cent
  const Values tenths(static_cast<std::size_t>(x.count()), 0.1);
  constexpr double most = 520 * 0x1p-24;  // roundings of 512 terms in f32 and of the lanes' sums
  for (const Op& op : {Op(GlobalAveragePool{}), Op(AveragePool{.window = 2048, .stride = 1})}) {
    const Case c{"", op, {x}, {}, Mode::inference};
    const Result got = run_case(c, {{tenths}}, {.dtype = DType::f32});
    CHECK(std::abs(got.y.at(0) - 0.1) <= 0.1 * most);
  }
  const Case c{"", Binary{BinaryFunction::multiply}, {x, {1, 1, 1, 1}}};
  const Result got = run_case(c, {{tenths, {1}}, {}, {}, Values(tenths.size(), 1)}, {.dtype = DType::f32});
  CHECK(std::abs(got.dx.at(1).at(0) / static_cast<double>(x.count()) - 0.1) <= 0.1 * most);
}

TEST_CASE("max pool agrees with the oracle") { check_all_against_oracle(max_cases()); }

TEST_CASE("average pool agrees with the oracle") { check_all_against_oracle(average_cases()); }

TEST_CASE("global average pool agrees with the oracle") { check_all_against_oracle(global_cases); }

TEST_CASE("max pool is exact in whole numbers") { check_all_integers(max_cases()); }

TEST_CASE("pooling has the gradients of finite differences") {
  for (const auto& cases : {max_cases(), average_cases(), global_cases})
    for (const Case& c : cases)
      if (c.mode == Mode::training) check_differences(c);
}
