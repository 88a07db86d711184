// Half precision: conversions of every number, and units that are computed in chunks.

#include "lib/core/units/unit_memory.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Compares half-precision results with f32 results of the same kernels. If `roundings` is above 0, parameter gradients
/// may differ by this number of roundings of f32, relative to the sum of |terms|.
void check_chunks(const Case& c, double tolerance, int roundings = 0, Layout layout = Layout::nchw) {
  for (const DType dtype : half_types()) {
    INFO(to_string(c) << " in " << to_string(dtype));
    const Spec wide = *make_spec(backend(), c, {.dtype = DType::f32}),
               half = *make_spec(backend(), c, {.dtype = dtype, .layout = layout});
    Feed feed;
    for (const TensorSpec& x : wide.x) feed.x.push_back(rounded(normal(x.shape, 1), dtype));
    for (const TensorSpec& w : wide.w) feed.w.push_back(rounded(normal(w.shape, 2), dtype));
    for (const TensorSpec& state : wide.state) feed.state.push_back(absolute(normal(state.shape, 3)));
    feed.dy = rounded(normal(wide.y.shape, 4), dtype);
    feed.dx.resize(feed.x.size());
    feed.dw.resize(feed.w.size());
    const Result want = run_unit(backend(), wide, {}, feed), got = run_unit(backend(), half, {}, feed);
    const auto check = [&](const Values& a, const Values& b, DType type, double allowed, const Values& terms = {}) {
      REQUIRE(a.size() == b.size());
      const Values stored = rounded(b, type);
      double worst = 0;
      for (std::size_t i = 0; i < a.size(); ++i)
        worst = larger(worst, std::abs(a[i] - stored[i]) / (terms.empty() ? 1 + std::abs(b[i]) : terms[i]));
      CHECK(worst <= allowed);
    };
    check(got.y, want.y, dtype, tolerance);
    for (std::size_t i = 0; i < got.dx.size(); ++i) check(got.dx[i], want.dx[i], dtype, tolerance);
    const Bounds bounds = roundings > 0 ? chain_bounds(c, feed) : Bounds{};
    for (std::size_t i = 0; i < got.dw.size(); ++i)
      roundings > 0 ? check(got.dw[i], want.dw[i], DType::f32, roundings * 0x1p-24, bounds.dw[i].terms)
                    : check(got.dw[i], want.dw[i], DType::f32, tolerance);
    for (std::size_t i = 0; i < got.state.size(); ++i) check(got.state[i], want.state[i], DType::f32, tolerance);
  }
}

}  // namespace

TEST_CASE("halves are converted to f32 exactly, and f32 to halves with one rounding, in packs and one by one") {
  for (const DType dtype : half_types())
    for (const bool pitched : {false, true})
      for (const int images : {1, 3}) check_conversions(backend(), dtype, images, pitched);
}

TEST_CASE("a unit of many numbers is computed in chunks of images, with the same results") {
  // Weight gradients are summed by chunks, and dx and y may be rounded to the other neighbour. Any sum of exact
  // products over 8 images has at most 8 roundings, and two such sums are compared.
  check_chunks({"", FullyConnected{.outputs = 2}, {{8, 8, 260, 260}}}, 0x1p-7, 16);
  if (backend().name().starts_with("cuda")) {  // forward saves by chunk; kernels with and without packs
    check_chunks({"", MaxPool{.window = 2, .stride = 2}, {{2, 8, 464, 464}}}, 0, 0, Layout::nhwc);
    for (const Shape& x : {Shape{2, 3, 7, 9}, Shape{2, 4, 4, 6}})
      check_chunks({"", BatchNorm{}, {x}, {{Pointwise{Function::silu}}}}, 0);
  }
  if (backend().name() != "eigen") return;  // other backends need no chunks here, or use another algorithm in a chunk
  // A sum of 1,800,000 terms has no useful bound. Its roundings are random, so each sum is within about one rounding.
  check_chunks({"", Conv{.channels = 3, .kernel = 3, .pad = 1}, {{6, 3, 500, 600}}, {{Relu{}}}}, 0x1p-7, 2);
  check_chunks({"", BatchNorm{}, {{2, 6, 700, 700}}, {{Relu{}}}}, 0);
  check_chunks({"", BatchNorm{}, {{2, 6, 700, 700}}, {{Relu{}}}, Mode::inference}, 0);
  check_chunks({"", Add{}, {{6, 2, 500, 700}, {6, 2, 500, 700}}, {{Relu{}}}}, 0);
}

TEST_CASE("cuda kernels that read and write half precision directly need no workspace for f32 copies") {
  const Shape x{2, 4, 6, 6};
  const Case cases[] = {{"", Relu{}, {x}},
                        {"", Pointwise{Function::clip, 0, 6}, {x}},
                        {"", Pointwise{Function::silu}, {x}},
                        {"", MaxPool{.window = 2, .stride = 2}, {x}},
                        {"", AveragePool{.window = 2, .stride = 2}, {x}},
                        {"", GlobalAveragePool{}, {x}},
                        {"", BatchNorm{}, {x}, {{Relu{}}}},
                        {"", BatchNorm{}, {x}, {{Pointwise{Function::silu}}}},
                        {"", Lrn{}, {x}},
                        {"", Dropout{}, {x}},
                        {"", Add{}, {x, x}, {{Relu{}}}},
                        {"", Add{}, {x, x}, {{Pointwise{Function::leaky_relu, 0.1}}}},
                        {"", Add{}, {x, x}, {{Pointwise{Function::clip, 0, 6}}}, Mode::inference},
                        {"", Concat{}, {x, x}},
                        {"", Slice{.first = 1, .count = 2}, {x}},
                        {"", Slice{.axis = Axis::row, .first = 1, .count = 2, .step = 2}, {x}},
                        {"", Concat{Axis::column}, {x, x}},
                        {"", Resize{.to = 9, .by = ResizeBy::linear}, {x}}};
  if (!backend().name().starts_with("cuda")) return;
  for (const Case& c : cases)
    for (const DType dtype : half_types()) {
      INFO(to_string(c) << " in " << to_string(dtype));
      const auto workspace = [&](DType type) {
        return workspace_bytes(backend().lower(*make_spec(backend(), c, {.dtype = type}), {}));
      };
      CHECK(workspace(dtype) == workspace(DType::f32));
    }
  // These units need f32 copies: the gradient must follow x where a rounded y is on the other side of a limit, and sums
  // of many values are rounded only once.
  const Case many{"", Add{}, std::vector<Shape>(65, x)};
  for (const Case& c :
       {Case{"", Pointwise{Function::clip, 0, 0.3}, {x}}, Case{"", Add{}, {x, x}, {{Pointwise{Function::clip, 0, 6}}}},
        Case{"", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {x}}, many})
    CHECK(workspace_bytes(backend().lower(*make_spec(backend(), c, {.dtype = DType::bf16}), {})) > 0);
}
