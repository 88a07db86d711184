// Winograd's F(4x4, 3x3) of cuda-host: its matrices, and its launchers compared with the oracle at the edges of blocks.

#include "kernels/winograd/conv_winograd_4x4.h"
#include "kernels/winograd/winograd_4x4.h"
#include "tests/kernels/gapped.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/winograd_bounds.h"

using namespace lamina::test;
using namespace lamina::cuda_host;

namespace {

/// The columns of the matrix of a linear function on vectors.
template <std::size_t from, std::size_t to>
Columns columns(void (*transform)(const double (&)[from], double (&)[to])) {
  Columns all;
  for (std::size_t i = 0; i < from; ++i) {
    double unit[from] = {}, image[to];
    unit[i] = 1;
    transform(unit, image);
    all.emplace_back(image, image + to);
  }
  return all;
}

/// The arguments of one run of the launchers.
struct Run {
  WinogradFilters filters;
  Values w, x;
  Shape x_shape, y_shape;
  Size pad;
  Values bias{}, mask{}, old{};  // an empty tensor is not used
  bool relu = false;
  std::int64_t gap = 0;
};

template <class T>
Values run(const Run& r) {
  const auto flat = [](std::size_t count) { return Shape{1, 1, 1, static_cast<int>(count)}; };
  Gapped<T> w(flat(r.w.size()), 0, r.w), bias(flat(r.bias.size()), 0, r.bias);
  Gapped<T> transformed(flat(static_cast<std::size_t>(winograd_4x4_filter_count<T>(r.filters))), 0);
  winograd_4x4_filters<T>(nullptr, r.filters, w.data(), transformed.data());
  Gapped<T> x(r.x_shape, r.gap, r.x), mask(r.x_shape, 2 * r.gap, r.mask.empty() ? r.x : r.mask);
  Gapped<T> y(r.y_shape, r.gap, r.old);
  WinogradConv<T> conv;
  conv.filters = r.filters;
  conv.transformed = transformed.data();
  conv.x = x.view();
  if (!r.mask.empty()) conv.mask = mask.view();
  conv.y = y.view();
  if (!r.bias.empty()) conv.bias = bias.data();
  conv.pad_h = r.pad.h;
  conv.pad_w = r.pad.w;
  conv.relu = r.relu;
  conv.adds = !r.old.empty();
  winograd_4x4<T>(nullptr, conv);
  CHECK(y.gaps_are_whole());
  return y.values();
}

double epsilon_of(std::size_t bytes) { return epsilon(bytes == sizeof(double) ? DType::f64 : DType::f32); }

/// If `masked`, a ReLU follows the convolution, and the gradient is masked by y and added to old contents.
template <class T>
void check(const Conv& op, const Shape& x, std::uint64_t key, bool masked = false, std::int64_t gap = 0) {
  Case c{"", op, {x}};
  if (masked) c.tail = {{Relu{}}};
  INFO(to_string(c) << ", a gap of " << gap << ", " << sizeof(T) << " bytes");
  const Feed feed = make_feed(c, key);
  const Result want = reference(c, feed);
  const Bounds bounds = chain_bounds(c, feed, {"winograd_4x4", "", "winograd_4x4"});
  const Shape y = infer(op, {x}).y;
  const int filters = op.channels / op.groups, channels = x.c / op.groups;
  Run forward{{op.groups, filters, channels, false}, feed.w[0], feed.x[0], x, y, op.pad};
  Run backward{{op.groups, channels, filters, true}, feed.w[0], feed.dy, y, x, {2 - op.pad.h, 2 - op.pad.w}};
  if (op.bias) forward.bias = feed.w[1];
  if (masked) {
    forward.relu = true;
    backward.mask = want.y;
    backward.old = feed.dx[0];
  }
  forward.gap = backward.gap = gap;
  check_close("y", run<T>(forward), want.y, bounds.y, epsilon_of(sizeof(T)));
  check_close("dx", run<T>(backward), want.dx[0], bounds.dx[0], epsilon_of(sizeof(T)), backward.old);
}

/// A weight gradient in `ranges` ranges; 0 means the default number. If `masked`, a ReLU follows the convolution. If
/// `adds`, dw has old contents, else dw is full of NaN.
struct WeightsRun {
  Conv op;
  Shape x;
  bool masked = false, adds = false;
  std::int64_t gap = 0;
  int ranges = 0;
};

template <class T>
void check_weight_run(const WeightsRun& r, std::uint64_t key) {
  Case c{"", r.op, {r.x}};
  if (r.masked) c.tail = {{Relu{}}};
  INFO(to_string(c) << (r.adds ? ", adds" : "") << ", a gap of " << r.gap << ", " << r.ranges << " ranges, "
                    << sizeof(T) << " bytes");
  const Feed feed = make_feed(c, key);
  const Result want = reference(c, feed);
  const Bounds bounds = chain_bounds(c, feed, {"", "winograd_4x4", ""});
  const Shape y = infer(r.op, {r.x}).y;
  const Shape w{1, 1, 1, static_cast<int>(feed.w[0].size())};
  Gapped<T> x(r.x, r.gap, feed.x[0]), dy(y, 3 * r.gap, feed.dy), mask(y, 2 * r.gap, want.y);
  Gapped<T> dw(w, 0, r.adds ? feed.dw[0] : Values{});
  WinogradWeights<T> conv;
  conv.groups = r.op.groups;
  conv.x = x.view();
  conv.dy.dy = dy.view();
  if (r.masked) conv.dy.mask = mask.view();
  conv.pad_h = r.op.pad.h;
  conv.pad_w = r.op.pad.w;
  conv.dw = dw.data();
  conv.adds = r.adds;
  Gapped<T> partial({1, 1, 1, static_cast<int>(winograd_4x4_weights_bytes(conv, r.ranges) / sizeof(T))}, 0);
  winograd_4x4_weights<T>(nullptr, conv, partial.data(), r.ranges);
  CHECK(dw.gaps_are_whole());
  check_close("dw", dw.values(), want.dw[0], bounds.dw[0], epsilon_of(sizeof(T)), r.adds ? feed.dw[0] : Values{});
}

}  // namespace

TEST_CASE("Winograd's matrices compute convolutions and weight gradients, and amplify errors as documented") {
  const Winograd named = *winograd_named("winograd_4x4");
  const Columns input = columns(winograd_input<double>);
  CHECK(checked_growth(columns(winograd_output<double>), columns(winograd_filter<double>), input) ==
        Approx(named.growth).epsilon(1e-12));
  CHECK(checked_growth(columns(winograd_gradient<double>), columns(winograd_spread<double>), input) ==
        Approx(named.weight_growth).epsilon(1e-12));
}

TEST_CASE("Winograd's convolutions agree with the oracle at the edges of tiles, blocks and steps") {
  std::uint64_t key = 0;
  for (const int pad : {0, 1, 2, 3})
    for (const Shape& x : {Shape{1, 2, 3, 3}, Shape{2, 1, 4, 9}, Shape{1, 3, 7, 6}, Shape{3, 5, 8, 12}}) {
      const Conv op{.channels = 3, .kernel = 3, .pad = {pad, (pad + 1) % 3}, .bias = pad % 2 == 0};
      check<double>(op, x, ++key);
      check<float>(op, x, key);
    }
  // One filter more than a block; one or two filters fewer, and groups; more tiles than a block, in several images.
  check<float>(Conv{.channels = 33, .kernel = 3, .pad = 1}, {1, 4, 5, 5}, ++key);
  check<float>(Conv{.channels = 62, .kernel = 3, .pad = 1, .groups = 2}, {1, 6, 5, 8}, ++key);
  check<float>(Conv{.channels = 2, .kernel = 3, .pad = 1}, {5, 33, 13, 11}, ++key);
  check<double>(Conv{.channels = 17, .kernel = 3, .pad = 1}, {1, 17, 9, 21}, ++key);
  check<double>(Conv{.channels = 15, .kernel = 3, .groups = 5}, {2, 35, 6, 5}, ++key);
}

TEST_CASE("Winograd's convolutions mask, add, apply a ReLU and skip gaps between images") {
  for (const std::int64_t gap : {0, 3, 8}) {
    check<float>(Conv{.channels = 6, .kernel = 3, .pad = 1, .groups = 2}, {2, 4, 8, 8}, 11, true, gap);
    check<float>(Conv{.channels = 4, .kernel = 3}, {3, 3, 7, 9}, 12, true, gap);
    check<double>(Conv{.channels = 3, .kernel = 3, .pad = 2}, {2, 3, 4, 6}, 13, true, gap);
  }
}

TEST_CASE("Winograd's weight gradient agrees with the oracle at the edges of pairs of tiles and of blocks") {
  std::uint64_t key = 0;
  for (const int pad : {0, 1, 2, 3})
    for (const Shape& x : {Shape{1, 2, 3, 3}, Shape{2, 1, 4, 9}, Shape{1, 3, 7, 6}, Shape{3, 5, 8, 12}}) {
      const Conv op{.channels = 3, .kernel = 3, .pad = {pad, (pad + 1) % 3}};
      check_weight_run<double>({op, x}, ++key);
      check_weight_run<float>({op, x}, key);
    }
  // One filter and channel more than a block; fewer filters and groups; rows of several pairs of tiles.
  check_weight_run<float>({{.channels = 33, .kernel = 3, .pad = 1}, {1, 33, 5, 5}}, ++key);
  check_weight_run<float>({{.channels = 62, .kernel = 3, .pad = 1, .groups = 2}, {1, 66, 5, 8}}, ++key);
  check_weight_run<float>({{.channels = 2, .kernel = 3, .pad = 1}, {2, 31, 13, 41}}, ++key);
  check_weight_run<double>({{.channels = 17, .kernel = 3, .pad = 1}, {1, 17, 9, 21}}, ++key);
  check_weight_run<double>({{.channels = 15, .kernel = 3, .groups = 5}, {2, 35, 6, 5}}, ++key);
}

TEST_CASE("Winograd's weight gradient masks dy, adds and skips gaps between images, with any number of ranges") {
  std::uint64_t key = 20;
  for (const std::int64_t gap : {0, 3, 8})
    for (const int ranges : {0, 1, 2, 5, 13, 40}) {  // there are 12, 18 or 4 pairs of tiles
      const bool adds = (gap + ranges) % 2 == 0;
      check_weight_run<float>(
          {{.channels = 6, .kernel = 3, .pad = 1, .groups = 2}, {2, 4, 9, 10}, true, adds, gap, ranges}, ++key);
      check_weight_run<float>({{.channels = 4, .kernel = 3}, {3, 3, 7, 26}, true, !adds, gap, ranges}, ++key);
      check_weight_run<double>({{.channels = 3, .kernel = 3, .pad = 2}, {2, 3, 4, 6}, gap > 0, adds, gap, ranges},
                               ++key);
    }
}

TEST_CASE("Winograd's weight gradient is split into ranges if it has few blocks, depending only on shapes") {
  const auto ranges = [](int filters, const Shape& x, int groups = 1) {
    WinogradWeights<float> conv;
    conv.groups = groups;
    conv.x = {nullptr, x.n, x.c, x.h, x.w, x.image()};
    conv.dy.dy = {nullptr, x.n, filters, x.h, x.w, filters * x.plane()};
    conv.pad_h = conv.pad_w = 1;
    return winograd_4x4_weights_ranges(conv).count;
  };
  CHECK(ranges(64, {16, 64, 56, 56}) == 33);                // 4 blocks in 33 ranges use all 132 multiprocessors
  CHECK(ranges(512, {16, 512, 28, 28}) == 1);               // 256 blocks are nearly two rounds
  CHECK(ranges(64, {1, 64, 16, 60}) == 2);                  // 32 pairs of tiles; a range has at least 16
  CHECK(ranges(64, {1, 64, 16, 56}) == 1);                  // 28 pairs of tiles
  CHECK(ranges(64 * 132, {16, 64 * 132, 8, 8}, 132) == 1);  // each group has a block for a multiprocessor
  WinogradWeights<float> conv;
  conv.x = {nullptr, 16, 64, 56, 56, 64 * 56 * 56};
  conv.dy.dy = conv.x;
  CHECK(winograd_4x4_weights_bytes(conv) == std::size_t{33} * 64 * 64 * 9 * sizeof(float));
  CHECK(winograd_4x4_weights_bytes(conv, 1) == 0);
}

TEST_CASE("Winograd refuses other kernels, strides and dilations, and the error names them") {
  const auto backend = make_backend("cuda-host");
  const auto refuses = [&](const Conv& op, const Choice& choice, const std::string& reason) {
    const Spec spec = *make_spec(*backend, {"", op, {{1, 2, 9, 9}}}, {.dtype = DType::f32});
    CHECK_THROWS_MATCHES(backend->lower(spec, choice), Unsupported, Says(reason));
  };
  const Choice forward{.algorithm = {"winograd_4x4", "", ""}}, weights{.algorithm = {"", "winograd_4x4", ""}};
  const Choice data{.algorithm = {"", "", "winograd_4x4"}};
  refuses({.channels = 2, .kernel = {3, 1}}, forward, "3x3 kernels, not 3x1");
  refuses({.channels = 2, .kernel = {1, 3}}, weights, "3x3 kernels, not 1x3");
  refuses({.channels = 2, .kernel = 3, .stride = {1, 2}}, data, "stride 1, not 1x2");
  refuses({.channels = 2, .kernel = 3, .stride = 2}, weights, "stride 1, not 2x2");
  refuses({.channels = 2, .kernel = 3, .dilation = 2}, forward, "dilation 1, not 2x2");
  refuses({.channels = 2, .kernel = 3, .dilation = {2, 1}}, weights, "dilation 1, not 2x1");
}

TEST_CASE("Winograd's weight gradient respects a workspace limit, or is not taken") {
  const auto backend = make_backend("cuda-host");
  const Conv op{.channels = 64, .kernel = 3, .pad = 1};
  const Spec spec = *make_spec(*backend, {"", op, {{16, 64, 56, 56}}}, {.dtype = DType::f32});
  const auto step = [&](const Choice& choice) { return backend->lower(spec, choice).steps[1]; };
  const std::size_t bytes = step({}).kernel->workspace_bytes();
  REQUIRE(step({}).algorithm == "winograd_4x4");
  CHECK(bytes >= std::size_t{33} * 64 * 64 * 9 * sizeof(float));
  Choice choice{.algorithm = {"direct", "", "direct"}};
  choice.workspace_limit = bytes;
  CHECK(step(choice).algorithm == "winograd_4x4");
  choice.workspace_limit = bytes - 1;
  CHECK(step(choice).algorithm != "winograd_4x4");
  choice.algorithm[1] = "winograd_4x4";
  CHECK_THROWS_MATCHES(backend->lower(spec, choice), Unsupported, Says("bytes of workspace"));
}

TEST_CASE("Winograd's weight gradient is picked if its model has fewer cycles than implicit gemm's model") {
  const auto backend = make_backend("cuda-host");
  const auto picks = [&](const Conv& op, const Shape& x, const Choice& choice = {}, DType dtype = DType::f32) {
    const Spec spec = *make_spec(*backend, {"", op, {x}}, {.dtype = dtype});
    return backend->lower(spec, choice).steps[1].algorithm == "winograd_4x4";
  };
  const auto conv_of = [](int filters) { return Conv{.channels = filters, .kernel = 3, .pad = 1}; };
  CHECK(picks(conv_of(64), {16, 64, 224, 224}));
  CHECK(picks(conv_of(512), {16, 512, 28, 28}));
  CHECK(picks(conv_of(512), {16, 512, 7, 7}));
  CHECK_FALSE(picks(conv_of(64), {16, 3, 224, 224}));  // only 3 of a block's 32 channels are used
  CHECK_FALSE(picks(conv_of(64), {16, 64, 5, 5}));     // 5 x 5 pixels fill 39 % of their 4 x 4 tiles
  CHECK_FALSE(picks(conv_of(64), {16, 64, 56, 56}, {.max_error = 1}));
  CHECK_FALSE(picks(conv_of(64), {16, 64, 56, 56}, {}, DType::f64));
}
