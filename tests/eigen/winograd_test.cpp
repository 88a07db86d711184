// Internals of Winograd's algorithms in the backend "eigen": their matrices, and every instruction set on shapes at the
// edges of tiles, strips, blocks and vectors.

#include "lamina/lamina.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"
#include "tests/support/numbers/winograd_bounds.h"

using namespace lamina::test;

namespace {

/// The matrices of the one-dimensional transforms.
struct Matrices {
  Columns input, output, filter, spread, gradient;
};

/// Finds the matrices X from the two-dimensional transforms X M X^T. Column 0 of every X begins with 1 (the point 0).
/// So the transform of M = e_i e_0^T has column i of X as its first column.
Matrices matrices_of(const eigen::WinogradTransforms<double>& transforms, int lanes) {
  const int tile = transforms.tile, taps = transforms.taps, patch = transforms.patch, weights = taps * taps;
  const auto size = static_cast<std::size_t>(patch * patch * lanes);
  Matrices matrices;
  const auto at = [](int row, int row_size) { return static_cast<std::size_t>(row * row_size); };
  const auto first_column = [&](const std::vector<double>& from, int rows, int row_size) {
    Values column;
    for (int row = 0; row < rows; ++row) column.push_back(from[at(row, row_size)]);
    return column;
  };
  for (int i = 0; i < patch; ++i) {
    std::vector<double> from(size), to(size), pixels(size), filter(static_cast<std::size_t>(weights));
    from[at(i, patch * lanes)] = 1;
    transforms.patches({to.data(), lanes, 0, 1}, from.data(), patch);
    matrices.input.push_back(first_column(to, patch, patch * lanes));
    const std::vector<double> no_bias(static_cast<std::size_t>(lanes));
    transforms.outputs(pixels.data(), tile, {from.data(), lanes, 0, 1}, no_bias.data());
    matrices.output.push_back(first_column(pixels, tile, tile * lanes));
    transforms.gradients(filter.data(), weights, from.data(), lanes, 1, false);
    matrices.gradient.push_back(first_column(filter, taps, taps));
  }
  for (int i = 0; i < taps; ++i) {
    std::vector<double> filter(static_cast<std::size_t>(weights)), to(size);
    filter[at(i, taps)] = 1;
    transforms.filters(to.data(), lanes, filter.data(), weights, nullptr, 1, false, 0);
    matrices.filter.push_back(first_column(to, patch, patch * lanes));
  }
  for (int i = 0; i < tile; ++i) {
    std::vector<double> from(size), to(size), sums(static_cast<std::size_t>(lanes));
    from[at(i, tile * lanes)] = 1;
    transforms.tiles({to.data(), lanes, 0, 1}, from.data(), tile, sums.data());
    matrices.spread.push_back(first_column(to, patch, patch * lanes));
    CHECK(sums[0] == 1);
  }
  return matrices;
}

/// Edge cases: channels that do not fill a vector, filters beyond a panel; planes of whole tiles, of a few pixels more,
/// of one pixel; rows with more tiles than a strip; more tiles than a block, also in a weight gradient in f64.
const std::vector<Case> winograd_cases = {
    {"one pixel", Conv{.channels = 2, .kernel = 3, .pad = 1}, {{3, 3, 1, 1}}},
    {"whole tiles", Conv{.channels = 16, .kernel = 3, .pad = 1}, {{2, 16, 8, 8}}},
    {"a pixel more", Conv{.channels = 17, .kernel = 3, .pad = 1, .bias = false}, {{2, 33, 9, 5}}},
    {"no padding", Conv{.channels = 5, .kernel = 3}, {{2, 4, 11, 10}}},
    {"different pads", Conv{.channels = 3, .kernel = 3, .pad = {2, 0}}, {{1, 2, 5, 7}}},
    {"pad beyond the kernel", Conv{.channels = 3, .kernel = 3, .pad = 4}, {{1, 2, 3, 2}}},
    {"several panels", Conv{.channels = 130, .kernel = 3, .pad = 1}, {{2, 20, 7, 7}}},
    {"many channels", Conv{.channels = 50, .kernel = 3, .pad = 1}, {{1, 150, 6, 6}}},
    {"several strips in a row", Conv{.channels = 3, .kernel = 3, .pad = 1}, {{1, 2, 3, 300}}},
    {"several blocks", Conv{.channels = 60, .kernel = 3, .pad = 1}, {{1, 20, 72, 72}}},
    {"groups", Conv{.channels = 36, .kernel = 3, .pad = 1, .groups = 2}, {{2, 38, 7, 6}}},
    {"ReLU", Conv{.channels = 20, .kernel = 3, .pad = 1}, {{2, 18, 14, 14}}, {{Relu{}}}},
    {"squares that overlap", Conv{.channels = 20, .kernel = 3, .pad = 1}, {{2, 36, 6, 21}}, {{Relu{}}}},
    {"squares in a plane cut off", Conv{.channels = 33, .kernel = 3, .pad = {3, 4}}, {{1, 17, 5, 18}}},
    {"several blocks of groups", Conv{.channels = 64, .kernel = 3, .pad = 1, .groups = 2}, {{1, 96, 70, 70}}},
    {"inference", Conv{.channels = 20, .kernel = 3, .pad = 1, .groups = 2}, {{2, 18, 9, 9}}, {}, Mode::inference},
    {"inference of many tiles", Conv{.channels = 20, .kernel = 3, .pad = 1}, {{2, 18, 29, 30}}, {}, Mode::inference},
    {"5x5: one pixel", Conv{.channels = 2, .kernel = 5, .pad = 2}, {{3, 3, 1, 1}}},
    {"5x5: whole tiles", Conv{.channels = 16, .kernel = 5, .pad = 2}, {{2, 16, 8, 8}}},
    {"5x5: a pixel more", Conv{.channels = 17, .kernel = 5, .pad = 2, .bias = false}, {{2, 33, 9, 5}}},
    {"5x5: no padding", Conv{.channels = 5, .kernel = 5}, {{2, 4, 11, 10}}},
    {"5x5: different pads", Conv{.channels = 3, .kernel = 5, .pad = {4, 1}}, {{1, 2, 5, 7}}},
    {"5x5: pad beyond the kernel", Conv{.channels = 3, .kernel = 5, .pad = 6}, {{1, 2, 3, 2}}},
    {"5x5: several panels", Conv{.channels = 130, .kernel = 5, .pad = 2}, {{2, 20, 7, 7}}},
    {"5x5: several strips in a row", Conv{.channels = 3, .kernel = 5, .pad = 2}, {{1, 2, 3, 150}}},
    {"5x5: several blocks of groups", Conv{.channels = 64, .kernel = 5, .pad = 2, .groups = 2}, {{1, 96, 35, 34}}},
    {"5x5: groups", Conv{.channels = 36, .kernel = 5, .pad = 2, .groups = 2}, {{2, 38, 7, 6}}},
    {"5x5: ReLU", Conv{.channels = 20, .kernel = 5, .pad = 2}, {{2, 36, 6, 21}}, {{Relu{}}}},
    {"5x5: inference", Conv{.channels = 20, .kernel = 5, .pad = 2, .groups = 2}, {{2, 18, 9, 9}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("Winograd's matrices multiply polynomials, and amplify errors as documented") {
  for (const eigen::InstructionSet* set : sets_here()) {
    const eigen::WinogradKernels<double>& all = set->f64.kernels.winograd;
    for (const auto* transforms : {&all.f2x2_3x3, &all.f4x4_3x3, &all.f2x2_5x5}) {
      const int tile = transforms->tile, taps = transforms->taps;
      INFO(set->name << ", tiles of " << tile << ", filters of " << taps);
      const Matrices m = matrices_of(*transforms, set->f64.kernels.lanes);
      const Winograd named = *winograd_named(tile == 2 ? "winograd_2x2" : "winograd_4x4", taps);
      CHECK(checked_growth(m.output, m.filter, m.input) == Approx(named.growth));
      CHECK(checked_growth(m.gradient, m.spread, m.input) == Approx(named.weight_growth));
      for (std::size_t a = 0; a < m.input.size(); ++a) {
        for (std::size_t o = 0; o < m.spread.size(); ++o) CHECK(m.spread[o][a] == m.output[a][o]);
        for (std::size_t r = 0; r < m.filter.size(); ++r) CHECK(std::abs(m.gradient[a][r] - m.filter[r][a]) < 1e-16);
      }
    }
  }
}

TEST_CASE("Winograd's algorithms are within their bounds on every instruction set and number of threads") {
  for (const Case& c : winograd_cases) {
    const Feed feed = make_feed(c, 1);
    const Result want = reference(c, feed);
    for (const char* algorithm : {"winograd_2x2", "winograd_4x4"}) {
      if (!winograd_named(algorithm, std::get<Conv>(c.op).kernel.h)) continue;
      const Algorithms algorithms = {algorithm, algorithm, algorithm};
      const Bounds bounds = chain_bounds(c, feed, algorithms);
      for (const eigen::InstructionSet* set : sets_here())
        for (const int threads : {1, 4, 5})
          for (const DType dtype : {DType::f32, DType::f64}) {
            INFO(set->name << ", " << threads << " threads, " << to_string(dtype) << ", " << algorithm << ": "
                           << to_string(c));
            const auto eigen = make_backend("eigen", {.threads = threads, .instruction_set = set->name});
            const Spec spec = *make_spec(*eigen, c, {.dtype = dtype});
            const Result got = run_unit(*eigen, spec, {.algorithm = algorithms}, feed);
            check_result(got, want, bounds, epsilon(dtype));
          }
    }
  }
}

// In f64, 92 tiles of 400 channels exceed a block of inputs, and 400 x 400 sums would be six blocks of outputs.
TEST_CASE("Winograd's weight gradient with many channels and few tiles is within its bounds") {
  const Case c{"several blocks of inputs", Conv{.channels = 400, .kernel = 3, .pad = 1}, {{1, 400, 1, 368}}};
  const Feed feed = make_feed(c, 1);
  const Result want = reference(c, feed);
  const Algorithms algorithms = {"winograd_4x4", "winograd_4x4", "winograd_4x4"};
  const Bounds bounds = chain_bounds(c, feed, algorithms);
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    const auto eigen = make_backend("eigen", {.threads = threads});
    const Spec spec = *make_spec(*eigen, c, {.dtype = DType::f64});
    const Result got = run_unit(*eigen, spec, {.algorithm = algorithms}, feed);
    for (std::size_t i = 0; i < got.dw.size(); ++i)
      check_close("dw", got.dw[i], want.dw[i], bounds.dw[i], epsilon(DType::f64));
  }
}

TEST_CASE("with a limit on the error, algorithms with a guarantee are taken, and Winograd has none") {
  Graph graph("four");
  Value x = graph.input({2, 32, 12, 12});
  x = conv(x, "a", {.channels = 32, .kernel = 3, .pad = 1});
  x = conv(x, "b", {.channels = 32, .kernel = 3, .pad = 1});
  x = conv(x, "c", {.channels = 16, .kernel = {5, 3}, .pad = {2, 1}});
  conv(x, "d", {.channels = 16, .kernel = 5, .pad = 1});
  const auto eigen = make_backend("eigen", {.threads = 1});
  Options options{.input_gradient = true};
  const Plan by_rule(graph, *eigen, options);
  const std::string rule[] = {"", "winograd_4x4", "winograd_4x4", "im2col_gemm", "winograd_2x2"};
  for (const Call& call : by_rule.calls()) CHECK(call.algorithm == rule[call.nodes.front()]);
  options.choice.max_error = 1e-6;
  const Plan bounded(graph, *eigen, options);
  REQUIRE(bounded.calls().size() == 12);
  for (const Call& call : bounded.calls()) {
    CHECK(call.max_error <= 1e-6);
    CHECK_FALSE(call.algorithm.starts_with("winograd"));
  }
}

TEST_CASE("with Winograd, a network's logits differ from f64 by at most 1e-4 of the largest logit") {
  const auto eigen = make_backend("eigen");
  for (const char* name : {"vgg16", "resnet18", "resnet50", "inception_v1"})
    for (const Mode mode : {Mode::training, Mode::inference}) {
      INFO(name);
      // The network is not too small, because a batch norm over few values amplifies every rounding.
      const Graph graph = nets::build(name, {.batch = 4, .image = 96, .width_divisor = 2});
      Plan exact(graph, *eigen, {.mode = mode, .dtype = DType::f64}), rounded(graph, *eigen, {.mode = mode});
      exact.forward();
      rounded.forward();
      int transformed = 0;
      for (const Call& call : rounded.calls()) transformed += call.algorithm.starts_with("winograd") ? 1 : 0;
      CHECK(transformed > 5);
      const Values want = read(eigen->device(), exact.output());
      CHECK(largest_gap(read(eigen->device(), rounded.output()), want) <= 1e-4 * largest_of(want));
    }
}
