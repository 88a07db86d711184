// Tensors that are large enough for non-temporal stores: they have the same bits as smaller tensors if each channel is
// computed separately.

#include "lib/backends/eigen/runtime/non_temporal.h"
#include "sets.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr int few = 3;  // channels of the smaller tensor

Values first_channels(const Values& all, const Shape& shape) {
  Values some;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    const auto from = all.begin() + n * shape.image();
    some.insert(some.end(), from, from + few * shape.plane());
  }
  return some;
}

Values first_values(const Values& all, std::int64_t count) { return {all.begin(), all.begin() + count}; }

/// A unit whose channels are independent of each other, with a feed, and the same with fewer channels.
struct Pair {
  Case large, small;
  Feed feed, small_feed;
  Choice choice{};
};

Pair batch_norm(const Shape& x, bool add_and_relu) {
  Pair pair;
  pair.large = {"", BatchNorm{}, {x}};
  if (add_and_relu) pair.large.tail = {{Add{}}, {Relu{}}};
  pair.small = pair.large;
  pair.small.x[0].c = few;
  for (std::uint64_t i = 0; i < (add_and_relu ? 2 : 1); ++i) {
    pair.feed.x.push_back(normal(x, 1 + i));
    pair.feed.dx.push_back(normal(x, 11 + i));
  }
  const Shape channels{1, x.c, 1, 1};
  pair.feed.w = {normal(channels, 3), normal(channels, 4)};
  pair.feed.dw = {normal(channels, 6), normal(channels, 7)};
  pair.feed.state = {Values(static_cast<std::size_t>(x.c)), Values(static_cast<std::size_t>(x.c), 1)};
  pair.feed.dy = normal(x, 5);
  for (const Values& values : pair.feed.x) pair.small_feed.x.push_back(first_channels(values, x));
  for (const Values& values : pair.feed.dx) pair.small_feed.dx.push_back(first_channels(values, x));
  for (const Values& values : pair.feed.w) pair.small_feed.w.push_back(first_values(values, few));
  for (const Values& values : pair.feed.dw) pair.small_feed.dw.push_back(first_values(values, few));
  for (const Values& values : pair.feed.state) pair.small_feed.state.push_back(first_values(values, few));
  pair.small_feed.dy = first_channels(pair.feed.dy, x);
  return pair;
}

/// A forward pass computes each filter separately.
Pair filters(const Conv& op, const Shape& x) {
  Pair pair;
  Conv small = op;
  small.channels = few;
  pair.large = {"", op, {x}, {{Relu{}}}, Mode::inference};
  pair.small = {"", small, {x}, {{Relu{}}}, Mode::inference};
  const std::int64_t weights = std::int64_t{x.c} * op.kernel.h * op.kernel.w;
  pair.feed.x = {normal(x, 1)};
  pair.feed.w = {normal({op.channels, static_cast<int>(weights), 1, 1}, 2), normal({1, op.channels, 1, 1}, 3)};
  pair.small_feed.x = pair.feed.x;
  pair.small_feed.w = {first_values(pair.feed.w[0], few * weights), first_values(pair.feed.w[1], few)};
  pair.choice.algorithm = {"im2col_gemm", "im2col_gemm", "im2col_gemm"};
  return pair;
}

/// A convolution with a group per channel, and its data gradient, compute each channel separately.
Pair channel_by_channel(const Shape& x, const std::string& algorithm, Conv op) {
  Pair pair;
  const auto conv = [&](int channels) {
    op.channels = op.groups = channels;
    return op;
  };
  const Shape y = infer(conv(x.c), {x}).y, weights = {x.c, 1, op.kernel.h, op.kernel.w};
  const std::int64_t few_weights = few * weights.plane();
  Shape small = x;
  small.c = few;
  pair.large = {"", conv(x.c), {x}};
  pair.small = {"", conv(few), {small}};
  pair.feed.x = {normal(x, 1)};
  pair.feed.w = {normal(weights, 2)};
  pair.feed.dx = {normal(x, 4)};
  pair.feed.dw = {normal(weights, 5)};
  pair.feed.dy = normal(y, 3);
  pair.small_feed.x = {first_channels(pair.feed.x[0], x)};
  pair.small_feed.w = {first_values(pair.feed.w[0], few_weights)};
  pair.small_feed.dx = {first_channels(pair.feed.dx[0], x)};
  pair.small_feed.dw = {first_values(pair.feed.dw[0], few_weights)};
  pair.small_feed.dy = first_channels(pair.feed.dy, y);
  pair.choice.algorithm = {algorithm, algorithm, algorithm};
  return pair;
}

void check_pair(const Pair& pair, const eigen::InstructionSet& set,
                const Conditions& conditions = {.dtype = DType::f32}, const Sharing& sharing = {}) {
  INFO(to_string(pair.large) << ' ' << to_string(conditions) << ", " << set.name << ", dx in dy: " << sharing.dx_in_dy);
  const auto backend = make_backend("eigen", {.threads = 2, .instruction_set = set.name});
  const Spec large = *make_spec(*backend, pair.large, conditions), small = *make_spec(*backend, pair.small, conditions);
#if defined(__x86_64__)
  if (conditions.dtype == DType::f32) {
    REQUIRE((eigen::wants_non_temporal<float>(large.y.shape) || eigen::wants_non_temporal<float>(large.x[0].shape)));
  } else {
    REQUIRE(eigen::wants_non_temporal<double>(large.y.shape));
  }
  REQUIRE(!eigen::wants_non_temporal<double>(small.y.shape));
#endif
  const Result got = run_unit(*backend, large, pair.choice, pair.feed, sharing);
  const Result want = run_unit(*backend, small, pair.choice, pair.small_feed, sharing);
  CHECK((first_channels(got.y, large.y.shape) == want.y));
  REQUIRE(got.dx.size() == want.dx.size());
  for (std::size_t i = 0; i < got.dx.size(); ++i) {
    INFO("dx " << i);
    CHECK((first_channels(got.dx[i], pair.large.x[0]) == want.dx[i]));
  }
}

}  // namespace

TEST_CASE("batch norm of a large tensor has the same bits as one of few channels") {
  const eigen::InstructionSet& widest = *sets_here().front();
  // Planes of whole lines of memory, and planes that start and end within lines.
  const Shape lines{2, 74, 240, 240}, parts{2, 80, 229, 231};
  const Pair pair = batch_norm(lines, true);
  for (const eigen::InstructionSet* set : sets_here()) check_pair(pair, *set);
  check_pair(pair, widest, {.dtype = DType::f32}, {.dx_in_dy = 0});
  check_pair(pair, widest, {.dtype = DType::f32}, {.dx_in_dy = 1});
  check_pair(pair, widest, {.dtype = DType::f32, .adds = true});
  check_pair(batch_norm(lines, false), widest, {.dtype = DType::f32, .pitched = true});
  check_pair(batch_norm(parts, true), widest);
  check_pair(batch_norm({2, 40, 229, 231}, true), widest, {.dtype = DType::f64});
}

TEST_CASE("a convolution with a large output has the same bits as one of few filters") {
  const eigen::InstructionSet& widest = *sets_here().front();
  const Pair packed = filters(Conv{.channels = 64, .kernel = 3, .pad = 1}, {2, 3, 256, 256});
  for (const eigen::InstructionSet* set : sets_here()) check_pair(packed, *set);
  const Pair in_place = filters(Conv{.channels = 71, .kernel = 1}, {2, 5, 240, 248});
  check_pair(in_place, widest);
  check_pair(in_place, widest, {.dtype = DType::f64});
  check_pair(filters(Conv{.channels = 68, .kernel = 3, .pad = 1}, {2, 3, 251, 253}), widest);
}

TEST_CASE("a convolution with a large data gradient has the same bits as one of few channels") {
  const Pair pair = channel_by_channel({2, 71, 240, 248}, "im2col_gemm", {.channels = 0, .kernel = 1, .bias = false});
  check_pair(pair, *sets_here().front());
  check_pair(pair, *sets_here().front(), {.dtype = DType::f32, .adds = true});
}

TEST_CASE("a depthwise convolution with a large output has the same bits as one of few channels") {
  const Shape x{2, 80, 229, 231};
  const Pair pair = channel_by_channel(x, "depthwise", {.channels = 0, .kernel = 3, .pad = 1, .bias = false});
  for (const eigen::InstructionSet* set : sets_here()) check_pair(pair, *set);
  check_pair(pair, *sets_here().front(), {.dtype = DType::f32, .adds = true});
  check_pair(channel_by_channel(x, "depthwise", {.channels = 0, .kernel = 3, .stride = 2, .pad = 1, .bias = false}),
             *sets_here().front());
}
