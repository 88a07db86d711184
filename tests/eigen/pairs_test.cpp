// Dot products of bf16 pairs. The instructions and their emulations ("twin" sets) have the documented bits, and units
// that use them keep their error bounds.

#include <bit>
#include <random>

#include "lib/core/numbers/float16.h"
#include "lib/core/units/unit_memory.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"

using namespace lamina::test;

namespace {

constexpr float least_normal = std::numeric_limits<float>::min();

float flushed(float value) { return std::abs(value) < least_normal ? std::copysign(0.0F, value) : value; }

/// a * b + c as the instruction computes it: rounded once, with denormal numbers as 0. a and b are bf16 numbers.
float multiply_add(float a, float b, float c) {
  a = flushed(a);
  b = flushed(b);
  c = flushed(c);
  // A result is tiny if it is below the least normal number even when rounded with unbounded exponents. The product is
  // exact in f64.
  const double wide = std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c));
  const bool tiny = std::abs(wide) < 0x1p-126 - 0x1p-151 && wide != 0;
  return tiny ? std::copysign(0.0F, static_cast<float>(wide)) : std::fma(a, b, c);
}

struct Halves {
  std::uint16_t lower, upper;
};
/// The dot product of `depth` pairs. The pairs of b are `ld` apart. AMX sums 16 pairs at a time, lower and upper halves
/// separately.
float dot(bool amx, const Halves* a, const Halves* b, std::size_t ld, std::size_t depth) {
  float sum = 0;
  for (std::size_t first = 0; first < depth; first += 16) {
    float lower = amx ? 0 : sum, apart = 0, &upper = amx ? apart : lower;
    for (std::size_t k = first; k < std::min(first + 16, depth); ++k) {
      upper = multiply_add(widen<DType::bf16>(a[k].upper), widen<DType::bf16>(b[k * ld].upper), upper);
      lower = multiply_add(widen<DType::bf16>(a[k].lower), widen<DType::bf16>(b[k * ld].lower), lower);
    }
    sum = amx ? flushed(sum + flushed(lower + upper)) : lower;
  }
  return sum;
}

/// Random numbers with products of every kind. Over a third are near 1. Half are near 2^-63, so that their products are
/// near the least normal number. Some are below twice the least normal number, many of them denormal. A few are so
/// large that sums are infinite.
class Draws {
 public:
  Halves pair() { return {number(), number()}; }

 private:
  std::uint16_t number() {
    const std::uint32_t sign_and_fraction = engine_() & 0x807fU, kind = engine_() % 64;
    const std::uint32_t near = engine_() % 8;
    const std::uint32_t exponent = kind < 24   ? 124 + near
                                   : kind < 56 ? 60 + near
                                   : kind < 63 ? near / 4
                                               : 250 + near / 2;
    return static_cast<std::uint16_t>(sign_and_fraction | exponent << 7);
  }
  std::mt19937 engine_{7};
};

float bits(Halves pair) { return std::bit_cast<float>(pair.lower | std::uint32_t{pair.upper} << 16); }

void check_pairs(const eigen::InstructionSet& set, std::int64_t depth, int rows, int vectors, bool non_temporal,
                 Draws& draws) {
  const eigen::MicroKernels<float>& kernels = *set.f32_pairs;
  const auto width = static_cast<std::size_t>(kernels.width()), deep = static_cast<std::size_t>(depth);
  std::vector<Halves> a(static_cast<std::size_t>(rows) * deep), b(deep * width);
  std::generate(a.begin(), a.end(), [&] { return draws.pair(); });
  std::generate(b.begin(), b.end(), [&] { return draws.pair(); });
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();  // after every row of a and after b; must not be read
  std::vector<float> a_bits(static_cast<std::size_t>(rows) * (deep + 16), nan), b_bits((deep + 16) * width, nan);
  for (std::size_t i = 0; i < a.size(); ++i) a_bits[i / deep * (deep + 16) + i % deep] = bits(a[i]);
  std::transform(b.begin(), b.end(), b_bits.begin(), bits);
  struct alignas(64) Line {
    float elements[16];
  };
  std::vector<Line> c(static_cast<std::size_t>(kernels.rows * kernels.vectors));
  const auto& functions = (non_temporal ? set.pairs->non_temporal_tile : set.pairs->tile)[rows <= kernels.rows / 2];
  if (kernels.enter != nullptr) kernels.enter();
  functions[vectors - 1]({.depth = depth,
                          .a = a_bits.data(),
                          .lda = depth + 16,
                          .rows = rows,
                          .b = b_bits.data(),
                          .ldb = kernels.width(),
                          .c = c.data()->elements,
                          .ldc = kernels.width()});
  if (kernels.leave != nullptr) kernels.leave();
  INFO(set.name << ": " << depth << " pairs, " << rows << " rows by " << vectors << " vectors");
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(vectors * kernels.lanes); ++j) {
      const float want = dot(kernels.enter != nullptr, &a[i * deep], &b[j], width, deep);
      const float got = c[(i * width + j) / 16].elements[j % 16];
      INFO(i << ", " << j << ": " << got << ", not " << want);
      const bool same = std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want);
      REQUIRE((same || (std::isnan(got) && std::isnan(want))));
    }
  }
}

Choice by_pairs() { return {.algorithm = {"bf16_gemm", "bf16_gemm", "bf16_gemm"}}; }

/// Cases whose sums have odd and even numbers of terms, which are grouped into pairs.
std::vector<Case> products() {
  const Shape odd{3, 5, 6, 5}, even{4, 6, 4, 4};
  return {
      {"", Conv{.channels = 7, .kernel = 1}, {odd}},
      {"", Conv{.channels = 8, .kernel = 3, .stride = 2, .pad = 1}, {even}, {{Relu{}}}},
      {"", Conv{.channels = 9, .kernel = 3, .pad = 1, .groups = 3}, {{2, 9, 5, 7}}, {{Relu{}}}},
      {"", Conv{.channels = 6, .kernel = {2, 3}, .dilation = 2, .groups = 2}, {{4, 6, 5, 7}}},
      {"", Conv{.channels = 6, .kernel = 4, .stride = 4}, {{5, 2, 9, 8}}},
      {"", Conv{.channels = 3, .kernel = 1}, {{2, 5, 1, 1}}},
      {"", FullyConnected{.outputs = 7}, {odd}, {{Relu{}}}},
      {"", FullyConnected{.outputs = 6}, {{5, 24, 1, 1}}},
      {"", FullyConnected{.outputs = 6}, {{5, 24, 1, 1}}, {}, Mode::inference},
      {"", Conv{.channels = 6, .kernel = 1}, {even}, {{Add{}, 0}, {Relu{}}}, Mode::inference},
      {"", Conv{.channels = 6, .kernel = 3, .groups = 3}, {{2, 9, 5, 7}}, {{BatchNorm{}}, {Relu{}}}, Mode::inference}};
}

}  // namespace

TEST_CASE("a tile of pairs rounds and flushes denormals as documented for the instruction, bit for bit") {
  Draws draws;
  for (const eigen::InstructionSet* set : pair_sets_here())
    for (const std::int64_t depth : {1, 2, 5, 16, 37})
      for (int rows = 1; rows <= set->pairs->rows; ++rows)
        for (int vectors = 1; vectors <= set->pairs->vectors; ++vectors)
          for (const bool non_temporal : {false, true}) check_pairs(*set, depth, rows, vectors, non_temporal, draws);
}

TEST_CASE("units that use bf16 pairs keep their error bound, also in chunks of images") {
  for (const eigen::InstructionSet* set : pair_sets_here()) {
    const auto eigen = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    std::vector<Case> cases = products();
    cases.push_back({"", Conv{.channels = 8, .kernel = 1}, {{6, 8, 256, 257}}});  // in chunks of two images
    for (const Case& c : cases) {
      for (const bool adds : {false, true}) {
        if (adds && c.mode == Mode::inference) continue;
        INFO(to_string(c) << " by " << set->name << (adds ? ", adds" : ""));
        const Spec spec = *make_spec(*eigen, c, {.dtype = DType::bf16, .adds = adds});
        Feed feed = make_feed(c, 3, Fill::normal, DType::bf16);
        const Result got = run_unit(*eigen, spec, by_pairs(), feed), want = reference(c, feed);
        const Bounds terms = chain_bounds(c, feed);
        const Lowered lowered = eigen->lower(spec, by_pairs());
        const auto check = [&](const Values& values, const Values& exact, const Bound& bound, Pass pass,
                               const Values& old) {
          const double error = std::find_if(lowered.steps.begin(), lowered.steps.end(), [&](const Lowered::Step& step) {
                                 return step.covers(pass);
                               })->max_error;
          double worst = 0;
          for (std::size_t i = 0; i < values.size(); ++i) {
            const double before = adds && pass != Pass::forward ? old[i] : 0;
            const double off = std::abs(values[i] - exact[i] - before);  // must be 0 if the terms are 0
            if (off != 0) worst = larger(worst, off / (bound.terms[i] + std::abs(before)));
          }
          CHECK(worst <= error);
          CHECK(error < (pass == Pass::backward_params ? 0.1 : 0.01));
        };
        check(got.y, want.y, terms.y, Pass::forward, {});
        if (c.mode == Mode::inference) continue;
        check(got.dx[0], want.dx[0], terms.dx[0], Pass::backward_data, feed.dx[0]);
        for (std::size_t i = 0; i < got.dw.size(); ++i)
          check(got.dw[i], want.dw[i], terms.dw[i], Pass::backward_params, feed.dw[i]);
      }
    }
  }
}

TEST_CASE("bf16_gemm is the default, with AMX even before Winograd, and is refused on sets without bf16 pairs") {
  const Case one{"", Conv{.channels = 64, .kernel = 1}, {{2, 64, 8, 8}}};
  const Case three{"", Conv{.channels = 64, .kernel = 3, .pad = 1}, {{2, 64, 8, 8}}};
  const Case single{"", Conv{.channels = 64, .kernel = 1}, {{1, 64, 8, 8}}};
  const auto taken = [](Backend& with, const Case& c, const Choice& choice, DType dtype = DType::bf16) {
    std::vector<std::string> names;
    for (const Lowered::Step& step : with.lower(*make_spec(with, c, {.dtype = dtype}), choice).steps)
      names.push_back(step.algorithm);
    return names;
  };
  using Names = std::vector<std::string>;
  for (const eigen::InstructionSet* set : pair_sets_here()) {
    const auto eigen = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    CHECK(taken(*eigen, one, {}) == Names{"bf16_gemm", "bf16_gemm", "bf16_gemm"});
    CHECK(eigen->lower(*make_spec(*eigen, one, {.dtype = DType::bf16}), {}).steps[0].reason ==
          "rule: the processor multiplies pairs of bf16");
    const auto product = [](int images) { return Case{"", FullyConnected{.outputs = 64}, {{images, 64, 1, 1}}}; };
    CHECK(taken(*eigen, product(31), {}) == Names{"gemm", "bf16_gemm", "bf16_gemm"});
    CHECK(taken(*eigen, product(32), {}) == Names{"bf16_gemm", "bf16_gemm", "bf16_gemm"});
    CHECK(taken(*eigen, three, {}) == Names(3, set->pairs->speedup > 4 ? "bf16_gemm" : "winograd_4x4"));
    CHECK(taken(*eigen, single, {}) == Names{"bf16_gemm", "im2col_gemm", "bf16_gemm"});  // one image: no pair of images
    CHECK(taken(*eigen, one, {.max_error = 0.005}) == Names{"im2col_gemm", "bf16_gemm", "im2col_gemm"});
    CHECK(taken(*eigen, one, {.algorithm = {"direct", "", "im2col_gemm"}}) ==
          Names{"direct", "bf16_gemm", "im2col_gemm"});
    CHECK(taken(*eigen, one, {}, DType::f16) == Names{"im2col_gemm", "im2col_gemm", "im2col_gemm"});
    CHECK_THROWS_AS(taken(*eigen, one, {.algorithm = {"bf16_gemm"}, .max_error = 0.005}), Unsupported);
    CHECK_THROWS_WITH(taken(*eigen, one, {.algorithm = {"bf16_gemm"}, .workspace_limit = 1 << 14}),
                      ContainsSubstring("forward: bf16_gemm needs"));
    CHECK_THROWS_AS(taken(*eigen, one, by_pairs(), DType::f16), Unsupported);
  }
  const auto generic = make_backend("eigen", {.threads = 2, .instruction_set = "generic"});
  CHECK_THROWS_WITH(taken(*generic, one, by_pairs()),
                    ContainsSubstring("x86-64-v4-bf16") && ContainsSubstring("forward"));
}

TEST_CASE("only bf16_gemm's own workspace must fit into the limit, not another product's") {
  const Case c{"", Conv{.channels = 64, .kernel = 1}, {{2, 64, 8, 8}}};
  for (const eigen::InstructionSet* set : pair_sets_here()) {
    const auto eigen = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    const Spec spec = *make_spec(*eigen, c, {.dtype = DType::bf16});
    const auto least = [&](const char* name) {
      return workspace_bytes(eigen->lower(spec, {.algorithm = {name, name, name}}));
    };
    const std::size_t needed = least("bf16_gemm");
    REQUIRE(needed < least("im2col_gemm"));
    Choice choice = by_pairs();
    choice.workspace_limit = needed;
    for (const Lowered::Step& step : eigen->lower(spec, choice).steps) CHECK(step.algorithm == "bf16_gemm");
    choice.workspace_limit = needed - 1;
    CHECK_THROWS_WITH(eigen->lower(spec, choice), ContainsSubstring("bf16_gemm needs"));
    // The limit also holds for a pass with another named algorithm.
    choice.workspace_limit = needed;
    choice.algorithm[1] = "im2col_gemm";
    CHECK_THROWS_AS(eigen->lower(spec, choice), Unsupported);
    const Lowered some = eigen->lower(spec, {.algorithm = {"bf16_gemm", "im2col_gemm", "direct"}});
    CHECK(some.steps[1].algorithm == "im2col_gemm");
    CHECK(some.steps[2].algorithm == "direct");
  }
}
