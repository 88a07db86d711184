// im2col on the host: the kernels compared with their definition, and im2col_gemm under workspace limits that split the
// batch into chunks. All numbers are whole, so every bit must be equal.

#include "kernels/conv/im2col.h"
#include "tests/kernels/gapped.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using namespace lamina::cuda_host;

namespace {

constexpr int gap = 5;  ///< elements between images

/// Calls body(index in columns, index in x) for every element that im2col must copy. Both tensors are dense.
template <class Body>
void for_each_copy(const ConvGeometry& g, const Shape& x, const Shape& columns, Body body) {
  std::size_t to = 0;
  for (int n = 0; n < x.n; ++n)
    for (int c = 0; c < x.c; ++c)
      for (int r = 0; r < g.kernel_h; ++r)
        for (int s = 0; s < g.kernel_w; ++s)
          for (int p = 0; p < columns.h; ++p)
            for (int q = 0; q < columns.w; ++q, ++to) {
              const int h = p * g.stride_h - g.pad_h + r * g.dilation_h,
                        w = q * g.stride_w - g.pad_w + s * g.dilation_w;
              if (h < 0 || h >= x.h || w < 0 || w >= x.w) continue;
              body(to, static_cast<std::size_t>(((std::int64_t{n} * x.c + c) * x.h + h) * x.w + w));
            }
}

template <class T>
void check_kernels(const ConvGeometry& g, const Shape& x_shape) {
  INFO(to_string(x_shape) << ", kernel " << g.kernel_h << 'x' << g.kernel_w << ", stride " << g.stride_h << 'x'
                          << g.stride_w << ", pad " << g.pad_h << 'x' << g.pad_w << ", dilation " << g.dilation_h << 'x'
                          << g.dilation_w << ", " << sizeof(T) << " bytes");
  const Shape shape{x_shape.n, x_shape.c * g.kernel_h * g.kernel_w,
                    (x_shape.h + 2 * g.pad_h - g.dilation_h * (g.kernel_h - 1) - 1) / g.stride_h + 1,
                    (x_shape.w + 2 * g.pad_w - g.dilation_w * (g.kernel_w - 1) - 1) / g.stride_w + 1};
  const Values x = integers(x_shape, 1), columns = integers(shape, 2), old = integers(x_shape, 3);
  Values copied = zeros(shape), gathered = zeros(x_shape);
  for_each_copy(g, x_shape, shape, [&](std::size_t to, std::size_t from) {
    copied[to] = x[from];
    gathered[from] += columns[to];
  });

  const Gapped<T> image(x_shape, gap, x), given(shape, gap, columns);
  Gapped<T> made(shape, gap);
  im2col<T>(nullptr, g, image.view(), made.view());
  CHECK(made.values() == copied);
  CHECK(made.gaps_are_whole());

  Gapped<T> fresh(x_shape, gap), added(x_shape, gap, old);
  col2im<T>(nullptr, g, given.view(), fresh.view(), false);
  CHECK(fresh.values() == gathered);
  CHECK(fresh.gaps_are_whole());
  col2im<T>(nullptr, g, given.view(), added.view(), true);
  for (std::size_t i = 0; i < old.size(); ++i) gathered[i] += old[i];
  CHECK(added.values() == gathered);
}

const Choice by_columns{.algorithm = {"im2col_gemm", "im2col_gemm", "im2col_gemm"}};

std::size_t workspace_of(const Lowered& lowered, Pass pass) {
  for (const Lowered::Step& step : lowered.steps)
    if (step.passes.front() == pass) return step.kernel->workspace_bytes();
  FAIL("no such pass");
  return 0;
}

/// Runs one convolution under several workspace limits. The bits must not change, and each limit must be respected.
void check_limits(const Case& c, DType dtype, bool adds) {
  INFO(to_string(c) << ", " << to_string(dtype) << (adds ? ", adds" : ""));
  const auto backend = make_backend("cuda-host");
  const Spec spec = *make_spec(*backend, c, {.dtype = dtype, .pitched = true, .adds = adds});
  Case one_image = c;
  one_image.x[0].n = 1;
  const Lowered least = backend->lower(*make_spec(*backend, one_image, {.dtype = dtype}), by_columns);
  // Whole numbers would be at the kink of a ReLU.
  const bool whole = c.tail.empty();
  const Feed feed = make_feed(c, 7, whole ? Fill::integers : Fill::normal);
  const Result want = reference(c, feed);
  const Bounds bounds = chain_bounds(c, feed, by_columns.algorithm);
  std::size_t one = 0;
  for (const Lowered::Step& step : least.steps) one = std::max(one, step.kernel->workspace_bytes());
  const Result first = run_unit(*backend, spec, by_columns, feed);
  // Limits for one image at a time, for two images with a remainder of one, and for all images.
  for (const std::size_t limit : {one, 2 * one, std::size_t{1} << 30}) {
    INFO("at most " << limit << " bytes of workspace");
    Choice choice = by_columns;
    choice.workspace_limit = limit;
    const Lowered lowered = backend->lower(spec, choice);
    for (const Lowered::Step& step : lowered.steps) CHECK(step.kernel->workspace_bytes() <= limit);
    const Result got = run_unit(*backend, spec, choice, feed);
    CHECK((got == first));
    check_result(got, want, bounds, whole ? 0 : epsilon(dtype), adds ? &feed : nullptr);
  }
  const Lowered two = backend->lower(spec, {.algorithm = by_columns.algorithm, .workspace_limit = 2 * one});
  const Lowered all = backend->lower(spec, by_columns);
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data}) {
    CHECK(workspace_of(least, pass) < workspace_of(two, pass));
    CHECK(workspace_of(two, pass) < workspace_of(all, pass));
  }
}

}  // namespace

TEST_CASE("im2col copies elements of the image, and the gradient sums all copies of an element") {
  for (const int stride : {1, 2, 3})
    for (const int dilation : {1, 2}) {
      check_kernels<float>({1, 3, 2, stride, 1, 2, 1, dilation, 1}, {2, 3, 8, 7});
      check_kernels<double>({1, 2, 3, 1, stride, 0, 3, 1, dilation}, {3, 2, 7, 9});
    }
  check_kernels<float>({1, 1, 1, 3, 2, 0, 0, 1, 1}, {2, 2, 8, 9});    // pixels that no window reaches
  check_kernels<float>({1, 5, 5, 1, 1, 4, 4, 1, 1}, {1, 1, 3, 2});    // windows that read only padding
  check_kernels<float>({2, 3, 3, 1, 1, 1, 1, 1, 1}, {2, 4, 17, 18});  // more elements than a block has threads
}

TEST_CASE("im2col_gemm runs as many images at once as the workspace holds, and the bits are the same") {
  for (const bool adds : {false, true}) {
    const Conv op{.channels = 6, .kernel = {3, 2}, .stride = {2, 1}, .pad = 1, .groups = 2};
    check_limits({"", op, {{5, 4, 7, 6}}, {{Relu{}}}}, DType::f32, adds);
    check_limits({"", op, {{5, 4, 7, 6}}}, DType::f64, adds);
  }
}

TEST_CASE("im2col_gemm refuses a workspace that is too small for one image, and says how much it needs") {
  const auto backend = make_backend("cuda-host");
  const Case c{"", Conv{.channels = 2, .kernel = 3}, {{2, 3, 8, 8}}};
  const Spec spec = *make_spec(*backend, c, {.dtype = DType::f32});
  // 27 rows of 36 pixels of 4 bytes are 3888 bytes, rounded up to a multiple of 256.
  Choice choice{.algorithm = {"im2col_gemm", "", ""}, .workspace_limit = 4095};
  CHECK_THROWS_MATCHES(backend->lower(spec, choice), Unsupported,
                       Says("im2col_gemm needs 4096 bytes of workspace, the limit is 4095"));
  choice.workspace_limit = 4096;
  CHECK(workspace_of(backend->lower(spec, choice), Pass::forward) == 4096);
}

TEST_CASE("im2col_gemm needs no columns for a 1x1 kernel with stride 1") {
  const auto backend = make_backend("cuda-host");
  const Conv plain{.channels = 4, .kernel = 1, .groups = 2};
  const Case c{"", plain, {{3, 6, 5, 7}}};
  const Spec spec = *make_spec(*backend, c, {.dtype = DType::f32, .pitched = true, .adds = true});
  Choice choice = by_columns;
  choice.workspace_limit = 0;
  const Feed feed = make_feed(c, 9, Fill::integers);
  const Result want = reference(c, feed), got = run_unit(*backend, spec, choice, feed);
  CHECK(got.y == want.y);
  for (std::size_t i = 0; i < want.dx[0].size(); ++i) CHECK(got.dx[0][i] == want.dx[0][i] + feed.dx[0][i]);
  Conv padded = plain;
  padded.pad = 1;
  const Spec other = *make_spec(*backend, {"", padded, {{3, 6, 5, 7}}}, {.dtype = DType::f32});
  CHECK_THROWS_AS(backend->lower(other, choice), Unsupported);
}
