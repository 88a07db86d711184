// Means, sums and maxima over axes.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr ReduceBy all_by[] = {ReduceBy::mean, ReduceBy::sum, ReduceBy::max};

/// Means, sums and maxima over every set of axes, at the edges of strips and warps.
std::vector<Case> reduce_cases() {
  std::vector<Case> all;
  for (const ReduceBy by : all_by) {
    for (int axes = 1; axes < 8; ++axes) {
      const Reduce op{by, (axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
      all.push_back({"map", op, {{2, 5, 3, 7}}});
      all.push_back({"sequence", op, {{3, 9, 11, 1}}});
    }
    all.push_back({"more than a strip", Reduce{by, true, false, false}, {{2, 3, 17, 31}}});
    all.push_back({"many channels", Reduce{by, true, false, false}, {{2, 301, 2, 3}}});
    all.push_back({"long rows", Reduce{by, true, false, true}, {{1, 3, 2, 129}}});
    all.push_back({"vectors", Reduce{by, true, false, false}, {{3, 131, 1, 1}}});
    all.push_back({"one cell", Reduce{by, false, true, false}, {{2, 3, 1, 4}}});
    all.push_back({"inference", Reduce{by, false, true, false}, {{2, 3, 5, 4}}, {}, Mode::inference});
  }
  return all;
}

/// The gradient of x for a maximum, by a plain loop: the first largest element gets dy.
Values first_winners(const Values& x, const Shape& shape, const Reduce& op, const Values& dy) {
  Values dx(x.size(), 0);
  const int c_of_y = op.channels ? 1 : shape.c, h_of_y = op.rows ? 1 : shape.h, w_of_y = op.columns ? 1 : shape.w;
  std::vector<std::ptrdiff_t> winner(dy.size(), -1);
  std::size_t i = 0;
  for (int n = 0; n < shape.n; ++n)
    for (int c = 0; c < shape.c; ++c)
      for (int h = 0; h < shape.h; ++h)
        for (int w = 0; w < shape.w; ++w, ++i) {
          const int place = ((n * c_of_y + (op.channels ? 0 : c)) * h_of_y + (op.rows ? 0 : h)) * w_of_y;
          std::ptrdiff_t& its = winner[static_cast<std::size_t>(place + (op.columns ? 0 : w))];
          if (its < 0 || x[i] > x[static_cast<std::size_t>(its)]) its = static_cast<std::ptrdiff_t>(i);
        }
  for (std::size_t k = 0; k < dy.size(); ++k) dx[static_cast<std::size_t>(winner[k])] = dy[k];
  return dx;
}

}  // namespace

TEST_CASE("reduce, by hand: one axis is reduced to one element") {
  const Shape x{1, 2, 2, 2};
  const Feed feed{{{1, 2, 3, 4, 5, 6, 7, 9}}, {}, {}, {2, 4, 8, 16}};
  check_example({"", Reduce{ReduceBy::sum, true, false, false}, {x}}, feed,
                {{6, 8, 10, 13}, {{2, 4, 8, 16, 2, 4, 8, 16}}});
  check_example({"", Reduce{ReduceBy::mean, false, true, false}, {x}}, feed,
                {{2, 3, 6, 7.5}, {{1, 2, 1, 2, 4, 8, 4, 8}}});
  check_example({"", Reduce{ReduceBy::max, false, false, true}, {x}}, feed,
                {{2, 4, 6, 9}, {{0, 2, 0, 4, 0, 8, 0, 16}}});
}

TEST_CASE("reduce, by hand: channels and columns are reduced to one element for each row") {
  const Feed feed{{{1, 2, 3, 4, 5, 6, 7, 8}}, {}, {}, {2, 4}};
  check_example({"", Reduce{ReduceBy::sum, true, false, true}, {{1, 2, 2, 2}}}, feed,
                {{14, 22}, {{2, 2, 4, 4, 2, 2, 4, 4}}});
  check_example({"", Reduce{ReduceBy::max, true, false, true}, {{1, 2, 2, 2}}}, feed,
                {{6, 8}, {{0, 0, 0, 0, 0, 2, 0, 4}}});
}

TEST_CASE("of equal elements the first one in order of c, h, w gets the gradient of a maximum") {
  const Shape shape{2, 3, 5, 237};
  Values x(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < x.size(); ++i)  // in odd planes the largest are beyond 1024 cells
    x[i] = static_cast<double>(i * 7 % 5 + (i / 1185 % 2 == 1 && i % 1185 > 1100 && i % 11 == 0 ? 5 : 0));
  for (int axes = 1; axes < 8; ++axes) {
    const Reduce op{ReduceBy::max, (axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
    Values dy(static_cast<std::size_t>(infer(op, {shape}).y.count()));
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<double>(i + 1);
    CAPTURE(to_string(op));
    CHECK(run_case({"", op, {shape}}, {{x}, {}, {}, dy}).dx[0] == first_winners(x, shape, op, dy));
  }
}

TEST_CASE("a NaN is the maximum of a reduce, and gets the gradient") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : {Shape{1, 1, 1, 70}, Shape{1, 70, 1, 2}, Shape{1, 1, 1, 2070}}) {
    const Reduce op{ReduceBy::max, shape.c > 1, false, shape.c == 1};
    Values x(static_cast<std::size_t>(shape.count()), 3);
    const std::size_t apart = shape.c > 1 ? 2 : 1, first = (x.size() / apart - 37) * apart;
    x[first] = x[first + 7 * apart] = nan;
    x[50 * apart] = 9;
    const Result result = run_case({"", op, {shape}}, {{x}, {}, {}, Values(apart, 2)});
    CHECK(std::isnan(result.y[0]));
    for (std::size_t i = 0; i < x.size(); i += apart) CHECK(result.dx[0][i] == (i == first ? 2 : 0));
  }
}

TEST_CASE("a mean over a long axis is as exact as a mean over a short axis") {
  for (const Shape& shape : {Shape{1, 1, 1, 1 << 20}, Shape{1, 1, 1 << 19, 2}}) {
    const Values tenths(static_cast<std::size_t>(shape.count()),
                        0.1);  // a simple sum in f32 would be wrong by a per cent
    const Case c{"", Reduce{ReduceBy::mean, false, shape.w == 2, shape.w != 2}, {shape}, {}, Mode::inference};
    const Result got = run_case(c, {{tenths}}, {.dtype = DType::f32});
    CHECK(std::abs(got.y.at(0) - 0.1) <= 0.1 * 520 * 0x1p-24);
  }
}

TEST_CASE("reduce agrees with the oracle") { check_all_against_oracle(reduce_cases()); }

TEST_CASE("sums and maxima are exact in whole numbers") {
  std::vector<Case> cases = reduce_cases();
  std::erase_if(cases, [](const Case& c) { return std::get<Reduce>(c.op).by == ReduceBy::mean; });
  check_all_integers(cases);
}

TEST_CASE("reduce has the gradients of its differences") { check_all_differences(reduce_cases()); }
