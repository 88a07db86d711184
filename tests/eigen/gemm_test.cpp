// Internals of the matrix products of the backend "eigen". Every instruction set, type and algorithm runs on shapes
// with edge cases. The results are compared with sums in double by the definition.

#include "lib/backends/eigen/gemm/gemm.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"

using namespace lamina::test;

namespace {

struct GemmCase {
  Shape x;
  Conv op;
};

// Edge cases: planes narrower and wider than a vector or a panel, filters that do not fill a tile, pad beyond the
// kernel, strides that skip pixels or whole residues, dilation, groups, depths of several blocks, images that share a
// panel.
const std::vector<GemmCase> gemm_cases = {
    {{2, 3, 9, 11}, {.channels = 5, .kernel = 3, .pad = 1}},
    {{3, 4, 7, 7}, {.channels = 17, .kernel = 1}},
    {{1, 8, 20, 30}, {.channels = 64, .kernel = 1}},
    {{2, 6, 13, 10}, {.channels = 9, .kernel = 1, .stride = 2}},
    {{2, 3, 31, 29}, {.channels = 8, .kernel = 7, .stride = 2, .pad = 3}},
    {{1, 3, 35, 35}, {.channels = 10, .kernel = 11, .stride = 4, .pad = 2}},
    {{3, 4, 12, 10}, {.channels = 6, .kernel = {1, 5}, .stride = {2, 1}, .pad = {0, 2}}},
    {{3, 4, 12, 10}, {.channels = 6, .kernel = {3, 2}, .stride = {1, 3}, .pad = {3, 4}}},
    {{2, 4, 15, 17}, {.channels = 8, .kernel = 3, .stride = 3, .pad = 1, .dilation = 2}},
    {{2, 6, 14, 14}, {.channels = 9, .kernel = 3, .pad = {2, 3}, .dilation = {2, 3}, .groups = 3}},
    {{2, 8, 6, 5}, {.channels = 16, .kernel = 3, .stride = 2, .pad = 1, .groups = 8}},
    {{2, 4, 9, 9}, {.channels = 4, .kernel = 2, .stride = 3, .pad = 5, .groups = 2, .bias = false}},
    {{3, 70, 7, 7}, {.channels = 18, .kernel = 3, .pad = 1}},
    {{1, 300, 5, 4}, {.channels = 13, .kernel = 2}},
    {{2, 2, 40, 37}, {.channels = 3, .kernel = {33, 30}}},
    {{2, 7, 31, 29}, {.channels = 9, .kernel = 7, .stride = 2, .pad = 3}},
    {{1, 5, 35, 33}, {.channels = 10, .kernel = {11, 7}, .stride = {4, 3}, .pad = 2}},
    {{3, 5, 12, 10}, {.channels = 6, .kernel = {3, 2}, .stride = {1, 3}, .pad = {3, 4}}},
    {{2, 9, 15, 17}, {.channels = 8, .kernel = 3, .stride = 3, .pad = 1, .dilation = 2}},
    {{2, 12, 14, 14}, {.channels = 10, .kernel = 3, .pad = {2, 3}, .dilation = {2, 3}, .groups = 2}},
    {{2, 40, 9, 50}, {.channels = 12, .kernel = 3, .stride = 2, .pad = 1}},
    {{1, 3, 300, 40}, {.channels = 5, .kernel = {5, 3}, .stride = {3, 1}, .pad = 2, .dilation = {2, 1}}},
    {{1, 1, 70, 130}, {.channels = 2, .kernel = 3, .pad = 1}},
    {{3, 4, 23, 26}, {.channels = 6, .kernel = {5, 7}, .stride = {2, 3}, .pad = {4, 6}, .groups = 2}},
    {{5, 3, 1, 1}, {.channels = 4, .kernel = 3, .pad = 4}},
    {{2, 2, 3, 3}, {.channels = 530, .kernel = 2}},
    // 1x1 on planes of whole vectors, which are not packed: groups, several blocks of depth and of columns
    {{5, 12, 4, 8}, {.channels = 10, .kernel = 1, .groups = 2}},
    {{2, 700, 4, 8}, {.channels = 9, .kernel = 1, .bias = false}},
    {{2, 40, 4, 4}, {.channels = 9, .kernel = 1}},
    {{2, 110, 28, 52}, {.channels = 7, .kernel = 1}},
    // 1x1 with columns beyond whole vectors, for several images and depths; rows whole pages apart, which are packed
    {{3, 20, 14, 14}, {.channels = 30, .kernel = 1}},
    {{9, 700, 7, 7}, {.channels = 9, .kernel = 1}},
    {{2, 5, 32, 32}, {.channels = 9, .kernel = 1}},
    // few columns beyond whole vectors, for one image and several; depths that are no multiple of a vector
    {{1, 20, 14, 14}, {.channels = 30, .kernel = 1}},
    {{3, 700, 7, 7}, {.channels = 21, .kernel = 1, .bias = false}},
    {{2, 37, 9, 9}, {.channels = 10, .kernel = 1}},
    {{1, 6, 11, 12}, {.channels = 8, .kernel = 1, .groups = 2}},
    // 1x1 with strides: dx has zeros between, to the right of and below its sums; weight gradients of several panels
    {{2, 6, 13, 14}, {.channels = 9, .kernel = 1, .stride = {3, 2}}},
    {{2, 6, 14, 13}, {.channels = 9, .kernel = 1, .stride = {2, 3}}},
    {{2, 5, 8, 70}, {.channels = 9, .kernel = 1, .stride = 2}},
    {{2, 300, 5, 5}, {.channels = 301, .kernel = 1, .stride = 2}},
    {{2, 6, 13, 14}, {.channels = 600, .kernel = 1, .stride = 2}},
    {{2, 5, 7, 9}, {.channels = 12, .kernel = 1, .stride = 2, .pad = 1}},
    // 1x1 with strides that read only padding and no element of x
    {{2, 5, 1, 1}, {.channels = 12, .kernel = 1, .stride = 2, .pad = 1}},
    // dx has whole rows of zeros between rows of sums, which are contiguous
    {{2, 6, 12, 100}, {.channels = 9, .kernel = 1, .stride = {2, 1}}},
    {{2, 6, 12, 100}, {.channels = 9, .kernel = {1, 5}, .stride = {3, 1}, .pad = {0, 2}}},
    // adjacent residues, several blocks of depth; packed panels of fewer vectors
    {{3, 20, 14, 14}, {.channels = 600, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{1, 9, 8, 8}, {.channels = 12, .kernel = 3, .pad = 1}},
    // two adjacent residues, both planes of dy itself
    {{2, 9, 6, 10}, {.channels = 7, .kernel = 2, .stride = 2}},
    // residues of one column each; transposed weights at distances of multiples of 1 KiB, in one and two groups
    {{2, 6, 3, 2}, {.channels = 7, .kernel = 3, .stride = {1, 2}, .pad = 1}},
    {{1, 6, 14, 15}, {.channels = 256, .kernel = 1}},
    {{1, 10, 5, 6}, {.channels = 512, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    // as many filters and channels as are transposed at once, and fewer; a kernel too large for this
    {{1, 21, 9, 8}, {.channels = 37, .kernel = 3, .stride = 2, .pad = 1}},
    {{1, 70, 3, 5}, {.channels = 20, .kernel = 1}},
    {{1, 5, 20, 19}, {.channels = 20, .kernel = {13, 12}, .stride = 2, .pad = 6}},
    // a data gradient whose residues are computed for one image at a time
    {{2, 8, 260, 300}, {.channels = 2, .kernel = 3, .stride = 2, .pad = 1}},
    // a column matrix of more than 4 MiB, which im2col_eigen makes in several blocks
    {{2, 8, 100, 160}, {.channels = 2, .kernel = 3, .pad = 1}},
};

// Groups of one channel or a few. Edge cases: square kernels with specialised code and other kernels, one or several
// filters per channel, padding beyond the kernel, strides with adjacent or scattered residues or residues without a
// tap, rows shorter than a vector, planes of several bands, several planes copied at once.
const std::vector<GemmCase> depthwise_cases = {
    {{2, 5, 1, 1}, {.channels = 5, .kernel = 1, .groups = 5}},
    {{2, 5, 9, 11}, {.channels = 5, .kernel = 1, .stride = 2, .pad = 1, .groups = 5}},
    {{2, 5, 7, 8}, {.channels = 5, .kernel = 1, .stride = 3, .groups = 5, .bias = false}},
    {{3, 40, 7, 7}, {.channels = 40, .kernel = 3, .pad = 1, .groups = 40}},
    {{2, 3, 14, 15}, {.channels = 3, .kernel = 3, .pad = 1, .groups = 3, .bias = false}},
    {{2, 3, 40, 37}, {.channels = 6, .kernel = 3, .pad = 2, .groups = 3}},
    {{1, 2, 140, 150}, {.channels = 2, .kernel = 3, .pad = 1, .groups = 2}},
    {{1, 2, 3, 1500}, {.channels = 2, .kernel = 3, .pad = 1, .groups = 2}},
    {{2, 5, 15, 14}, {.channels = 5, .kernel = 3, .stride = 2, .pad = 1, .groups = 5}},
    {{2, 2, 130, 141}, {.channels = 2, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{2, 3, 22, 41}, {.channels = 9, .kernel = 3, .stride = 3, .pad = 3, .groups = 3}},
    {{2, 3, 21, 40}, {.channels = 3, .kernel = 3, .stride = {2, 1}, .pad = 1, .groups = 3}},
    {{2, 3, 21, 40}, {.channels = 6, .kernel = {1, 3}, .stride = {1, 2}, .pad = {0, 2}, .groups = 3}},
    {{2, 3, 12, 13}, {.channels = 3, .kernel = 3, .pad = 2, .dilation = 2, .groups = 3}},
    {{2, 3, 19, 17}, {.channels = 6, .kernel = 3, .stride = 2, .pad = {0, 2}, .dilation = {2, 1}, .groups = 3}},
    {{3, 17, 7, 7}, {.channels = 17, .kernel = 5, .pad = 2, .groups = 17}},
    {{2, 3, 7, 7}, {.channels = 3, .kernel = 7, .pad = 3, .groups = 3}},
    {{2, 3, 8, 9}, {.channels = 3, .kernel = 3, .pad = 1, .groups = 3}},
    {{2, 3, 40, 37}, {.channels = 3, .kernel = 5, .pad = {4, 1}, .groups = 3}},
    {{2, 4, 29, 28}, {.channels = 8, .kernel = 5, .stride = 2, .pad = 2, .groups = 4, .bias = false}},
    {{2, 2, 40, 37}, {.channels = 2, .kernel = 7, .pad = 3, .groups = 2}},
    {{2, 3, 6, 9}, {.channels = 9, .kernel = 7, .stride = {1, 3}, .pad = 6, .groups = 3}},
    {{2, 3, 16, 23}, {.channels = 3, .kernel = {2, 4}, .stride = {3, 2}, .pad = {3, 5}, .groups = 3}},
    {{2, 3, 16, 23}, {.channels = 6, .kernel = {4, 2}, .stride = {2, 5}, .pad = 1, .groups = 3}},
    {{2, 2, 40, 37}, {.channels = 2, .kernel = {33, 30}, .groups = 2}},
    {{2, 1, 28, 30}, {.channels = 20, .kernel = 5}},
    {{2, 3, 5, 6}, {.channels = 3, .kernel = 2, .stride = 1 << 20, .pad = 1, .groups = 3}},
    {{2, 3, 1, 1}, {.channels = 3, .kernel = 1, .stride = 2, .pad = 1, .groups = 3}},
    // vectors of filters, full and half: tiles that fit the rows and columns or overlap, several bands, groups of two
    // vectors, groups that two threads share
    {{2, 32, 9, 7}, {.channels = 32, .kernel = 3, .pad = 1, .groups = 2}},
    {{3, 48, 14, 14}, {.channels = 48, .kernel = 3, .pad = 1, .groups = 3, .bias = false}},
    {{1, 16, 40, 61}, {.channels = 16, .kernel = 3, .pad = 1, .groups = 2}},
    {{2, 64, 21, 30}, {.channels = 64, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{2, 24, 3, 20}, {.channels = 24, .kernel = 5, .pad = 2, .groups = 3}},
    {{1, 8, 12, 17}, {.channels = 32, .kernel = {3, 2}, .stride = {1, 2}, .pad = 2, .dilation = 2, .groups = 2}},
    {{2, 12, 9, 10}, {.channels = 24, .kernel = {2, 3}, .pad = {0, 3}, .groups = 3}},
};

/// Calls term(y index, w index, x index) for every multiplication of one image's convolution. The indices of y and x
/// are within the image.
template <class Term>
void products(const Conv& op, const Shape& x, const Shape& y, Term&& term) {
  const std::int64_t channels = x.c / op.groups, filters = y.c / op.groups;
  for (std::int64_t k = 0; k < y.c; ++k)
    for (std::int64_t c = 0; c < channels; ++c)
      for (int r = 0; r < op.kernel.h; ++r)
        for (int s = 0; s < op.kernel.w; ++s)
          for (int p = 0; p < y.h; ++p)
            for (int q = 0; q < y.w; ++q) {
              const int h = p * op.stride.h - op.pad.h + r * op.dilation.h,
                        w = q * op.stride.w - op.pad.w + s * op.dilation.w;
              if (h < 0 || h >= x.h || w < 0 || w >= x.w) continue;
              term((k * y.h + p) * y.w + q, ((k * channels + c) * op.kernel.h + r) * op.kernel.w + s,
                   ((k / filters * channels + c) * x.h + h) * x.w + w);
            }
}

/// The results by the definition, in double, and the sums of |terms|.
struct Sums {
  Result result;
  Bounds bounds;
};

/// The results of a convolution by the definition. With a ReLU, `passes` is the mask of y; without a ReLU, it is empty.
Sums definition(const Conv& conv, const Shape& x, const Shape& y, const Feed& feed, const std::vector<bool>& passes) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const double kernel = static_cast<double>(conv.kernel.h) * conv.kernel.w;
  const double positions = static_cast<double>(y.n) * static_cast<double>(y.plane());
  Sums sums{{zeros(y), {zeros(x)}, feed.w, {}},
            {{zeros(y), kernel * x.c / conv.groups + 9}, {{zeros(x), kernel * y.c / conv.groups + 9}}, {}, {}}};
  Result& result = sums.result;
  Bounds& bounds = sums.bounds;
  for (Values& dw : result.dw) {
    std::fill(dw.begin(), dw.end(), 0.0);
    bounds.dw.push_back({dw, positions + 9});
  }
  const auto add = [](Values& values, Bound& bound, std::int64_t i, double term) {
    values[static_cast<std::size_t>(i)] += term;
    bound.terms[static_cast<std::size_t>(i)] += std::abs(term);
  };
  Values dy = feed.dy;
  for (std::size_t i = 0; i < passes.size(); ++i) dy[i] = passes[i] ? dy[i] : 0;
  for (std::int64_t n = 0; n < x.n; ++n) {
    const std::int64_t of_y = n * y.image(), of_x = n * x.image();
    for (std::int64_t i = 0; conv.bias && i < y.image(); ++i) {
      add(result.y, bounds.y, of_y + i, feed.w[1][at(i / y.plane())]);
      add(result.dw[1], bounds.dw[1], i / y.plane(), dy[at(of_y + i)]);
    }
    products(conv, x, y, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
      const double weight = feed.w[0][at(j)], input = feed.x[0][at(of_x + l)], upstream = dy[at(of_y + i)];
      add(result.y, bounds.y, of_y + i, weight * input);
      add(result.dw[0], bounds.dw[0], j, upstream * input);
      add(result.dx[0], bounds.dx[0], of_x + l, upstream * weight);
    });
  }
  if (!passes.empty())
    for (double& value : result.y) value = std::max(value, 0.0);
  return sums;
}

/// The operands of an op that equals the convolution `conv`, and its results by the definition. The results are
/// computed again only if the ReLU's mask changes.
struct Numbers {
  Op op;
  Conv conv;
  Shape x;
  bool integers;
  Feed feed = make_feed({"", op, {x}}, 1, integers ? Fill::integers : Fill::normal);
  struct Known {
    std::vector<bool> passes;
    Sums sums;
  };
  std::map<bool, Known> known{};  ///< results with and without a ReLU
};

/// Runs all passes, and compares the results with the definition.
void check_gemm(Numbers& numbers, const std::string& algorithm, Backend& eigen, const Conditions& conditions,
                bool relu) {
  const Feed& feed = numbers.feed;
  Case c{"", numbers.op, {numbers.x}};
  if (relu) c.tail = {{Relu{}}};
  const Spec spec = *make_spec(eigen, c, conditions);
  const Choice choice{.algorithm = {algorithm, algorithm, algorithm}};
  for (const Lowered::Step& step : eigen.lower(spec, choice).steps) CHECK(step.algorithm == algorithm);
  const Result got = run_unit(eigen, spec, choice, feed);
  std::vector<bool> passes;
  if (relu) std::transform(got.y.begin(), got.y.end(), std::back_inserter(passes), [](double y) { return y > 0; });
  const auto [known, is_new] = numbers.known.try_emplace(relu);
  if (is_new || known->second.passes != passes)
    known->second = {passes, definition(numbers.conv, numbers.x, spec.y.shape, feed, passes)};
  const auto& [result, bounds] = known->second.sums;
  const double roundoff =
      conditions.dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : epsilon(conditions.dtype);
  check_result(got, result, bounds, numbers.integers ? 0 : roundoff, conditions.adds ? &feed : nullptr);
}

/// Checks an op that equals the convolution `conv`: `algorithm` on every instruction set, the other algorithms on one
/// set.
void check_all(const Op& op, const Conv& conv, const Shape& x, const std::string& algorithm) {
  std::vector<std::pair<std::string, const eigen::InstructionSet*>> ways;
  for (const eigen::InstructionSet* set : sets_here()) ways.emplace_back(algorithm, set);
  if (algorithm == "im2col_gemm") ways.emplace_back("im2col_eigen", sets_here().front());
  if (algorithm != "depthwise") ways.emplace_back("direct", eigen::instruction_sets().back());
  Numbers normal{op, conv, x, false}, integers{op, conv, x, true};
  for (const auto& [name, set] : ways)
    for (const int threads : {1, 3}) {
      const auto eigen = make_backend("eigen", {.threads = threads, .instruction_set = set->name});
      for (const bool relu : {false, true}) {
        const bool adds = (threads == 3) != relu, pitched = threads == 3;
        INFO(to_string(op) << " of " << to_string(x) << " by " << name << ", " << set->name << ", " << threads
                           << " threads, relu " << relu << ", add " << adds);
        for (const DType dtype : {DType::f32, DType::f64})
          check_gemm(normal, name, *eigen, {.dtype = dtype, .pitched = pitched, .adds = adds}, relu);
        check_gemm(integers, name, *eigen, {.dtype = DType::f32, .pitched = pitched, .adds = adds}, relu);
      }
    }
}

}  // namespace

TEST_CASE("a convolution equals its definition on every instruction set, by every algorithm") {
  for (const GemmCase& c : gemm_cases) check_all(c.op, c.op, c.x, "im2col_gemm");
  for (const GemmCase& c : depthwise_cases) check_all(c.op, c.op, c.x, "depthwise");
}

TEST_CASE("no panel is a single vector if there are more vectors") {
  for (const std::int64_t most : {1, 2, 3}) {
    for (std::int64_t vectors = 1; vectors <= 40; ++vectors) {
      std::int64_t panels = 0, left = vectors;
      for (; left > 0; ++panels) {
        const std::int64_t taken = eigen::panel_vectors(left, most);
        if (most > 2) REQUIRE(taken >= std::min<std::int64_t>(vectors, 2));
        REQUIRE(taken <= most);
        left -= taken;
      }
      CHECK(left == 0);
      CHECK(panels == (vectors + most - 1) / most);
    }
  }
}

TEST_CASE("a fully connected op equals the convolution whose kernel is the whole plane") {
  const std::vector<std::pair<Shape, FullyConnected>> layers = {
      {{3, 5, 4, 3}, {.outputs = 7}},    {{1, 300, 1, 1}, {.outputs = 33, .bias = false}},
      {{50, 17, 2, 2}, {.outputs = 40}}, {{2, 2500, 1, 1}, {.outputs = 300}},
      {{300, 40, 1, 1}, {.outputs = 5}}, {{65, 530, 1, 1}, {.outputs = 13}},
      {{130, 70, 1, 1}, {.outputs = 50}}};
  for (const auto& [x, op] : layers) {
    const Conv conv{.channels = op.outputs, .kernel = {x.h, x.w}, .bias = op.bias};
    check_all(op, conv, x, "gemm");
  }
}
