// Pools with dilated windows, any pads, and over slices.

#include <cmath>
#include <limits>

#include "lamina/op.h"
#include "tests/support/backend.h"
#include "tests/support/cases/example.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

struct Geometry {
  std::string name;
  SpacePool op;
  Shape x;
};

std::vector<Geometry> geometries() {
  const PoolAxis one{}, dilated{.size = 3, .stride = 2, .before = 2, .after = 1, .dilation = 2};
  const PoolAxis uneven{.size = 2, .before = 1}, wide{.size = 3, .stride = 2, .before = 2, .after = 2};
  return {
      {"dilated", {.of = PoolOf::maximum, .rows = dilated, .columns = {.size = 2, .dilation = 3}}, {2, 3, 7, 8}},
      {"uneven pads", {.of = PoolOf::maximum, .rows = uneven, .columns = {.size = 3, .after = 2}}, {2, 2, 4, 5}},
      {"pads above half a window", {.of = PoolOf::maximum, .rows = wide, .columns = wide}, {1, 2, 5, 6}},
      {"slices",
       {.of = PoolOf::maximum, .depth = {.size = 2}, .rows = uneven, .columns = one, .slices = 3},
       {2, 6, 3, 4}},
      {"slices alone", {.of = PoolOf::maximum, .depth = wide, .slices = 5}, {1, 10, 2, 3}},
      {"all at once, rounded up",
       {.of = PoolOf::maximum,
        .depth = wide,
        .rows = dilated,
        .columns = uneven,
        .slices = 4,
        .rounding = Rounding::up},
       {2, 8, 6, 5}},
      {"windows in the padding",
       {.of = PoolOf::maximum, .rows = {.size = 1, .stride = 2, .before = 3, .after = 4}, .columns = uneven},
       {1, 2, 3, 4}},
  };
}

/// Every geometry as maximum, as both means, and as places in inference.
std::vector<Case> cases(PoolOf of) {
  std::vector<Case> all;
  for (const Geometry& g : geometries())
    for (const bool counts : {false, true}) {
      if (counts && of != PoolOf::mean) continue;
      SpacePool op = g.op;
      op.of = of;
      op.count_padding = counts;
      for (const Mode mode : {Mode::training, Mode::inference})
        if (of != PoolOf::place || mode == Mode::inference) all.push_back({g.name, op, {g.x}, {}, mode});
    }
  return all;
}

}  // namespace

TEST_CASE("space pool, by hand: a dilated maximum, and its gradient at the first of equal ones") {
  check_example({"", SpacePool{.of = PoolOf::maximum, .columns = {.size = 2, .dilation = 2}}, {{1, 1, 1, 5}}},
                {{{3, 9, 3, 1, 4}}, {}, {}, {1, 2, 4}, {}, {}}, {{3, 9, 4}, {{1, 2, 0, 0, 4}}, {}, {}});
}

TEST_CASE("space pool, by hand: means over slices count the cells inside, or the padding too") {
  const PoolAxis pair{.size = 2, .before = 1};
  SpacePool op{.of = PoolOf::mean, .depth = pair, .slices = 3};
  const Case inside{"", op, {{1, 3, 1, 1}}};
  check_example(inside, {{{2, 4, 8}}, {}, {}, {1, 2, 4}, {}, {}}, {{2, 3, 6}, {{2, 3, 2}}, {}, {}});
  op.count_padding = true;
  const Case counted{"", op, {{1, 3, 1, 1}}};
  check_example(counted, {{{2, 4, 8}}, {}, {}, {2, 2, 4}, {}, {}}, {{1, 3, 6}, {{2, 3, 2}}, {}, {}});
}

TEST_CASE("space pool, by hand: places are indices in the whole of x") {
  const SpacePool op{
      .of = PoolOf::place, .depth = {.size = 2}, .columns = {.size = 2, .after = 1, .dilation = 2}, .slices = 2};
  const Case c{"", op, {{2, 2, 1, 3}}, {}, Mode::inference};
  check_example(c, {{{3, 9, 3, 1, 4, 2, 0, 0, 0, 7, 0, 8}}, {}, {}, {}, {}, {}}, {{0, 1, 11, 7}, {}, {}, {}});
}

TEST_CASE("space pool: a window without a cell is minus infinity, a mean of 0 or the place -1") {
  const PoolAxis beyond{.size = 1, .stride = 2, .before = 2};
  SpacePool op{.of = PoolOf::maximum, .columns = beyond};
  for (const DType dtype : element_types()) {
    const auto run = [&] {
      const Case c{"", op, {{1, 1, 1, 1}}, {}, Mode::inference};
      return run_unit(backend(), *make_spec(backend(), c, {.dtype = dtype}), {}, {{{5}}, {}, {}, {}, {}, {}}).y;
    };
    op.of = PoolOf::maximum;
    CHECK(run() == Values{-std::numeric_limits<double>::infinity(), 5});
    op.of = PoolOf::mean;
    CHECK(run() == Values{0, 5});
    op.of = PoolOf::place;
    CHECK(run() == Values{-1, 0});
  }
}

TEST_CASE("space pool: the first NaN of a window is its maximum") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case c{"", SpacePool{.of = PoolOf::maximum, .columns = {.size = 2}}, {{1, 1, 1, 4}}, {}, Mode::inference};
  for (const DType dtype : element_types()) {
    const Values y =
        run_unit(backend(), *make_spec(backend(), c, {.dtype = dtype}), {}, {{{1, nan, 9, 2}}, {}, {}, {}, {}, {}}).y;
    CHECK((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 9));
  }
}

TEST_CASE("space pool agrees with the oracle") {
  for (const PoolOf of : {PoolOf::maximum, PoolOf::mean, PoolOf::place})
    for (const Case& c : cases(of)) CHECK(check_against_oracle(c));
}

TEST_CASE("space pool of maxima is exact in whole numbers") {
  for (const Case& c : cases(PoolOf::maximum)) check_integers(c);
}

TEST_CASE("space pool has the gradients of its differences") {
  for (const PoolOf of : {PoolOf::maximum, PoolOf::mean})
    for (const Case& c : cases(of)) {
      const bool infinite = of == PoolOf::maximum && c.name == "windows in the padding";
      if (c.mode == Mode::training && !infinite) check_differences(c);
    }
}
