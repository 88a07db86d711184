// Ops that compute each channel separately have the same bits on large tensors, which take non-temporal stores, as on
// smaller tensors.

#include "lib/backends/eigen/runtime/non_temporal.h"
#include "sets.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr int few = 3;  // number of channels of the smaller tensor

Values first_channels(const Values& all, const Shape& shape, int channels) {
  Values some;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    const auto from = all.begin() + n * shape.image();
    some.insert(some.end(), from, from + channels * shape.plane());
  }
  return some;
}

/// A unit with independent channels, and the same unit with fewer channels, each with a feed.
struct Pair {
  Case large, small;
  std::string algorithm{};
  Feed feed = make_large_feed(large, 1), small_feed = part_of_feed();

  /// The shape of the i-th input. Inputs of the tail have the shape of the first input.
  static Shape shape_of(const Case& its, std::size_t i) { return its.x[i < its.x.size() ? i : 0]; }

  /// The feed of the small unit: the first channels of tensors, and the first numbers of parameters and state.
  Feed part_of_feed() const {
    Feed part = make_large_feed(small, 1);
    for (auto list : {&Feed::x, &Feed::dx})
      for (std::size_t i = 0; i < feed.x.size(); ++i)
        (part.*list)[i] = first_channels((feed.*list)[i], shape_of(large, i), shape_of(small, i).c);
    for (auto list : {&Feed::w, &Feed::dw, &Feed::state})
      for (std::size_t i = 0; i < (feed.*list).size(); ++i)
        std::copy_n((feed.*list)[i].begin(), (part.*list)[i].size(), (part.*list)[i].begin());
    part.dy = first_channels(feed.dy, infer(large.op, large.x).y, infer(small.op, small.x).y.c);
    return part;
  }
};

Pair batch_norm(const Shape& x, bool add_and_relu) {
  Case large{"", BatchNorm{}, {x}};
  if (add_and_relu) large.tail = {{Add{}}, {Relu{}}};
  Case small = large;
  small.x[0].c = few;
  return {large, small};
}

/// An op that computes each channel of its tensors separately. `op` makes it for a number of channels.
template <class Op>
Pair separate_channels(const std::vector<Shape>& x, const Op& op) {
  const auto with = [&](int channels) {
    Case its{"", op(channels), x};
    for (Shape& shape : its.x) shape.c = channels;
    return its;
  };
  return {with(x[0].c), with(few)};
}

/// A convolution whose forward pass computes each filter separately.
Pair filters(const Conv& op, const Shape& x) {
  Conv small = op;
  small.channels = few;
  return {{"", op, {x}, {{Relu{}}}, Mode::inference}, {"", small, {x}, {{Relu{}}}, Mode::inference}, "im2col_gemm"};
}

/// A convolution with one group per channel. It and its data gradient compute each channel separately.
Pair channel_by_channel(const Shape& x, const std::string& algorithm, Conv op) {
  Pair pair = separate_channels({x}, [&](int channels) {
    op.channels = op.groups = channels;
    return op;
  });
  pair.algorithm = algorithm;
  return pair;
}

void check_pair(const Pair& pair, const eigen::InstructionSet& set,
                const Conditions& conditions = {.dtype = DType::f32}, const Sharing& sharing = {}) {
  non_temporal_bytes() = std::int64_t{32} << 20;
  INFO(to_string(pair.large) << ' ' << to_string(conditions) << ", " << set.name << ", dx in dy: " << sharing.dx_in_dy);
  const auto backend = make_backend("eigen", {.threads = 2, .instruction_set = set.name});
  const Spec large = *make_spec(*backend, pair.large, conditions), small = *make_spec(*backend, pair.small, conditions);
#if defined(__x86_64__)
  const auto is_large = [f32 = conditions.dtype == DType::f32](const Shape& shape) {
    return f32 ? eigen::wants_non_temporal<float>(shape) : eigen::wants_non_temporal<double>(shape);
  };
  REQUIRE((is_large(large.y.shape) || is_large(large.x[0].shape)));
  REQUIRE(!eigen::wants_non_temporal<double>(small.y.shape));
#endif
  const Choice choice{.algorithm = {pair.algorithm, pair.algorithm, pair.algorithm}};
  const Result got = run_unit(*backend, large, choice, pair.feed, sharing);
  const Result want = run_unit(*backend, small, choice, pair.small_feed, sharing);
  CHECK((first_channels(got.y, large.y.shape, small.y.shape.c) == want.y));
  REQUIRE(got.dx.size() == want.dx.size());
  for (std::size_t i = 0; i < got.dx.size(); ++i) {
    INFO("dx " << i);
    CHECK((first_channels(got.dx[i], Pair::shape_of(pair.large, i), few) == want.dx[i]));
  }
}

}  // namespace

TEST_CASE("batch norm of a large tensor has the same bits as of few of its channels") {
  const eigen::InstructionSet& widest = *sets_here().front();
  // Planes of whole cache lines, and planes that begin and end within cache lines.
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

TEST_CASE("element-wise ops and copies of a large tensor have the same bits as of few of its channels") {
  const Shape x{2, 80, 229, 231};
  const auto check = [](const auto& op, const std::vector<Shape>& all, const Conditions& conditions) {
    check_pair(separate_channels(all, [&](int) { return op; }), *sets_here().front(), conditions);
  };
  const Conditions plain{.dtype = DType::f32};
  check(Pointwise{Function::elu, 1, 1}, {x}, plain);
  check(Binary{BinaryFunction::multiply}, {x, {2, 80, 1, 1}}, plain);
  check(Softmax{.axis = Axis::row, .log = true}, {x}, plain);
  check(Reduce{ReduceBy::max, false, false, true}, {x}, plain);
  check(Binary{BinaryFunction::divide}, {x, {2, 80, 1, 231}}, {.dtype = DType::f32, .adds = true});
  check(Pad{.before = 1, .after = {2, 3}, .value = 2}, {x}, {.dtype = DType::f32, .pitched = true});
  check(Concat{.axis = Axis::column}, {x, {2, 80, 229, 3}}, plain);
  check(Resize{.to = {300, 280}, .by = ResizeBy::linear}, {x}, plain);
  const auto transpose = [](int channels) { return Reorder{{channels, 97, 700}, {0, 2, 1}, channels, {700, 97}}; };
  check_pair(separate_channels({{2, 80, 97, 700}}, transpose), *sets_here().front());
}

TEST_CASE("a convolution with a large output has the same bits as with few of its filters") {
  const eigen::InstructionSet& widest = *sets_here().front();
  const Pair packed = filters(Conv{.channels = 64, .kernel = 3, .pad = 1}, {2, 3, 256, 256});
  for (const eigen::InstructionSet* set : sets_here()) check_pair(packed, *set);
  const Pair in_place = filters(Conv{.channels = 71, .kernel = 1}, {2, 5, 240, 248});
  check_pair(in_place, widest);
  check_pair(in_place, widest, {.dtype = DType::f64});
  check_pair(filters(Conv{.channels = 68, .kernel = 3, .pad = 1}, {2, 3, 251, 253}), widest);
}

TEST_CASE("a convolution with a large data gradient has the same bits as with few of its channels") {
  const Pair pair = channel_by_channel({2, 71, 240, 248}, "im2col_gemm", {.channels = 0, .kernel = 1, .bias = false});
  check_pair(pair, *sets_here().front());
  check_pair(pair, *sets_here().front(), {.dtype = DType::f32, .adds = true});
}

TEST_CASE("a depthwise convolution with a large output has the same bits as with few of its channels") {
  const Shape x{2, 80, 229, 231};
  const Pair pair = channel_by_channel(x, "depthwise", {.channels = 0, .kernel = 3, .pad = 1, .bias = false});
  for (const eigen::InstructionSet* set : sets_here()) check_pair(pair, *set);
  check_pair(pair, *sets_here().front(), {.dtype = DType::f32, .adds = true});
  check_pair(channel_by_channel(x, "depthwise", {.channels = 0, .kernel = 3, .stride = 2, .pad = 1, .bias = false}),
             *sets_here().front());
}
