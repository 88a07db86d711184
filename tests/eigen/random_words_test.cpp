// The random words of dropout on every instruction set. Each word is the word of its counter, for every length and
// beginning of a run.

#include "tests/eigen/random_words_avx2.h"

#include "lamina/op.h"
#include "lamina/random.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/unit.h"

using namespace lamina::test;

namespace {

constexpr std::uint64_t all_ones = ~std::uint64_t{0};
constexpr int largest_run = 40;  // in counters

/// Checks that a run has the words of philox, and that nothing after the run is written.
template <class Draw>
void check_run(int counters, std::uint64_t key, std::uint64_t first, std::uint64_t high, const Draw& draw) {
  constexpr std::uint32_t wall = 0xA5A5A5A5U;
  std::vector<std::uint32_t> words(4 * largest_run + 8, wall), want = words;
  draw(counters, key, first, high, words.data());
  for (int i = 0; i < counters; ++i) {
    const auto four = philox(key, first + static_cast<std::uint64_t>(i), high);
    std::copy(four.begin(), four.end(), want.begin() + 4 * i);
  }
  if (words == want) return;
  const auto differs = std::mismatch(words.begin(), words.end(), want.begin()).first - words.begin();
  FAIL_CHECK("word " << differs << " of a run of " << counters << " counters from " << first << ", key " << key
                     << ", high " << high);
}

/// Checks runs of 8 to 40 counters, in steps of 8. The lower or upper half of a counter overflows at each place of a
/// run. Keys and steps use all their bits.
template <class Draw>
void check_draws(const Draw& draw) {
  const std::vector<std::uint64_t> edges = {
      0,       1, 0x80000000U, 0xFFFFFFFFU, 0x100000000U, 0x0123456789ABCDEFU, 0x8000000000000000U, 0xFEDCBA9876543210U,
      all_ones};
  for (int counters = 8; counters <= largest_run; counters += 8) {
    for (const std::uint64_t key : edges)
      for (const std::uint64_t high : edges)
        for (const std::uint64_t first : edges) check_run(counters, key, first, high, draw);
    for (int before = 0; before <= counters; ++before) {
      const auto back = static_cast<std::uint64_t>(before);
      check_run(counters, 0x0123456789ABCDEFU, 0x100000000U - back, 77, draw);
      check_run(counters, 0x0123456789ABCDEFU, 0xFFFFFFFF00000000U - back, 77, draw);
      check_run(counters, 0x0123456789ABCDEFU, std::uint64_t{0} - back, 77, draw);
    }
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("runs of random words equal words drawn one by one, for every processor") { check_draws(draw_words); }

#ifdef LAMINA_TEST_AVX2
TEST_CASE("runs of random words equal words drawn one by one, with AVX2 vectors") {
  for (const eigen::InstructionSet* set : sets_here())
    if (set->name != std::string("generic")) check_draws(draw_words_avx2);
}
#endif

TEST_CASE("dropout draws the documented words for every length and beginning, on every instruction set") {
  const std::uint64_t key = 0xFEDCBA9876543210U, step = 0x000F234567890ABCU;  // the step fits into a double
  for (const eigen::InstructionSet* set : sets_here()) {
    const auto backend = make_backend("eigen", {.threads = 1, .instruction_set = set->name});
    INFO(set->name);
    // The second image begins at each of the four words of a counter, and runs end at each.
    for (int length = 1; length <= 265; ++length) {
      const Shape shape{2, length, 1, 1};
      const auto count = static_cast<std::size_t>(shape.count());
      Values want(count);
      for (std::size_t i = 0; i < count; ++i) want[i] = philox(key, i / 4, step)[i % 4] < 0x80000000U ? 0 : 2;
      const Case c{"", Dropout{.rate = 0.5, .seed = key}, {shape}};
      const Spec spec = *make_spec(*backend, c, {.dtype = DType::f32});
      const Feed feed{{Values(count, 1.0)}, {}, {{static_cast<double>(step)}}, Values(count, 1.0), {}, {}};
      const Result result = run_unit(*backend, spec, {}, feed);
      CHECK((result.y == want && result.dx[0] == want));
    }
  }
}
