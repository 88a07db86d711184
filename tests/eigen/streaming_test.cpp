// Tensors that are stored past the caches: the same bits as those of a smaller tensor, which is not, where each channel
// is computed for itself.

#include <string>
#include <vector>

#include "backends/eigen/streaming.h"
#include "lamina/backend.h"
#include "sets.h"
#include "support/catch.h"
#include "support/suite.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// The first `few` channels of all images.
Values first_channels(const Values& all, const Shape& shape, int few) {
  Values some;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    const auto from = all.begin() + n * shape.image();
    some.insert(some.end(), from, from + few * shape.plane());
  }
  return some;
}

Values first_values(const Values& all, std::int64_t few) { return {all.begin(), all.begin() + few}; }

/// A unit whose channels are independent of each other, with a feed, and the same with fewer channels.
struct Pair {
  Case large, small;
  Feed feed, small_feed;
  Choice choice{};
};

constexpr int few = 3;

Pair batch_norm(const Shape& x, bool adds) {
  Pair pair;
  pair.large = {"", BatchNorm{}, {x}};
  if (adds) pair.large.tail = {{Add{}}, {Relu{}}};
  pair.small = pair.large;
  pair.small.x[0].c = few;
  for (std::uint64_t i = 0; i < (adds ? 2 : 1); ++i) pair.feed.x.push_back(normal(x, 1 + i));
  const Shape channels{1, x.c, 1, 1};
  pair.feed.w = {normal(channels, 3), normal(channels, 4)};
  pair.feed.state = {Values(static_cast<std::size_t>(x.c)), Values(static_cast<std::size_t>(x.c), 1)};
  pair.feed.dy = normal(x, 5);
  for (const Values& values : pair.feed.x) pair.small_feed.x.push_back(first_channels(values, x, few));
  for (const Values& values : pair.feed.w) pair.small_feed.w.push_back(first_values(values, few));
  for (const Values& values : pair.feed.state) pair.small_feed.state.push_back(first_values(values, few));
  pair.small_feed.dy = first_channels(pair.feed.dy, x, few);
  return pair;
}

/// Forward, filters are independent.
Pair convolution(const Conv& op, const Shape& x) {
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

void check(const Pair& pair, const eigen::InstructionSet& set, const Sharing& sharing = {}) {
  INFO(to_string(pair.large) << ", " << set.name << ", dx in dy: " << sharing.dx_in_dy);
  const auto backend = make_backend("eigen", {.threads = 2, .instruction_set = set.name});
  const Conditions conditions{.dtype = DType::f32};
  const Spec large = *make_spec(*backend, pair.large, conditions), small = *make_spec(*backend, pair.small, conditions);
  REQUIRE(eigen::streams<float>(large.y.shape));
  REQUIRE(!eigen::streams<float>(small.y.shape));
  const Result got = run_unit(*backend, large, pair.choice, pair.feed, sharing);
  const Result want = run_unit(*backend, small, pair.choice, pair.small_feed, sharing);
  CHECK((first_channels(got.y, large.y.shape, few) == want.y));
  REQUIRE(got.dx.size() == want.dx.size());
  for (std::size_t i = 0; i < got.dx.size(); ++i) {
    INFO("dx " << i);
    CHECK((first_channels(got.dx[i], pair.large.x[0], few) == want.dx[i]));
  }
}

}  // namespace

TEST_CASE("batch normalisation past the caches") {
  const eigen::InstructionSet& widest = *sets_here().front();
  const Shape whole_lines{2, 74, 240, 240}, any_lines{2, 80, 229, 231};  // of memory, that planes start and end in
  const Pair pair = batch_norm(whole_lines, true);
  for (const eigen::InstructionSet* set : sets_here()) check(pair, *set);
  check(pair, widest, {.dx_in_dy = 0});
  check(pair, widest, {.dx_in_dy = 1});
  check(batch_norm(whole_lines, false), widest);
  check(batch_norm(any_lines, true), widest);
}

TEST_CASE("convolution past the caches") {
  const Pair pair = convolution(Conv{.channels = 64, .kernel = 3, .pad = 1}, {2, 3, 256, 256});
  for (const eigen::InstructionSet* set : sets_here()) check(pair, *set);
  check(convolution(Conv{.channels = 65, .kernel = 1}, {2, 5, 256, 256}), *sets_here().front());
  check(convolution(Conv{.channels = 68, .kernel = 3, .pad = 1}, {2, 3, 251, 253}), *sets_here().front());
}
