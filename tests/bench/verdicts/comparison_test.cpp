// Verdicts on two sets of results with the noise of real passes.

#include <algorithm>
#include <functional>

#include "lamina/error.h"
#include "machine.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using namespace lamina::bench::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Compares the sides, by default with a gate of 3 %.
Comparison compare(const Sides& sides, CompareRules rules = {}) {
  if (!rules.fail_if_slower) rules.fail_if_slower = 0.03;
  return bench::compare(sides.first, sides.second, rules);
}

/// The number of processes that `compare` asks for. `compare` is asked twice: after one process of each side, and after
/// the number of processes that the first answer wants. At most 1000: for more, compare prints "over 1000".
std::size_t asked(const std::function<Sides(std::size_t)>& run, const CompareRules& rules = {}) {
  const std::size_t few = compare(run(1), rules).processes_wanted(rules.smallest);
  const Comparison found = compare(run(few), rules);
  std::size_t most = few;
  for (const ComparedRow& row : found.rows) most = std::max(most, found.processes_wanted(row, rules.smallest));
  return std::min<std::size_t>(most, 1000);
}

}  // namespace

TEST_CASE("at least 95 of 100 comparisons of the program with itself find no row slower or faster") {
  const bool stalls = GENERATE(false, true);
  const std::size_t count = GENERATE(1, 2, 8, 30);
  CAPTURE(stalls, count);
  Machine machine(211, stalls);
  int beyond = 0;
  CHECK(of_100([&] {
          const Comparison found = compare(networks(machine, count));
          beyond += found.failed().empty() ? 0 : 1;
          return changed(found) == 0;
        }) >= (count < 8 ? 100 : 95));
  CHECK(beyond == 0);
}

TEST_CASE("a tenfold slowdown always fails the gate, even with one process or while other programs run") {
  const bool stalls = GENERATE(false, true);
  const std::size_t count = GENERATE(1, 2, 8);
  const double others = stalls ? 0 : GENERATE(0.0, 0.3);
  CAPTURE(stalls, count, others);
  Machine machine(220, stalls);
  CHECK(of_100([&] {
          Sides sides = networks(machine, count, 10);
          for (RunFile& file : sides.second) file.rows["net/resnet18"].others_share = others;
          const Comparison found = compare(sides);
          const ComparedRow& row = row_of(found, "net/resnet18");
          return row.verdict == Verdict::slower && found.failed() == std::vector{&row};
        }) == 100);
}

TEST_CASE("with too few processes for an interval, rows differ only if even the closest times differ threefold") {
  Machine machine(214);
  const auto judged = [&](double factor, std::size_t count) { return compare(networks(machine, count, factor)); };
  const Comparison one = judged(2.5, 1);
  CHECK(one.count(Verdict::inconclusive) == 4);
  CHECK(one.failed().empty());
  const std::size_t wanted = one.processes_wanted(0.02);
  CHECK(wanted >= 6);
  for (const ComparedRow& row : one.rows) {
    CHECK(row.is_undecided());
    CHECK(row.missing_processes() == wanted - 1);
    CHECK(row.ratio.middle == Approx(row.seconds / row.first_seconds));
    CHECK_THAT(row.reason, ContainsSubstring(std::to_string(wanted - 1) + " more needed"));
  }
  CHECK(row_of(judged(4, 1), "net/resnet18").verdict == Verdict::slower);
  CHECK_THAT(row_of(judged(4, 1), "net/resnet18").reason, ContainsSubstring("the closest differ"));
  CHECK(row_of(judged(0.25, 1), "net/resnet18").verdict == Verdict::faster);
  CHECK(row_of(judged(2.5, wanted - 1), "net/resnet18").is_undecided());
  CHECK(row_of(judged(2.5, wanted), "net/resnet18").verdict == Verdict::slower);
  CHECK(judged(2.5, wanted).failed().size() == 1);
}

TEST_CASE("with the processes that compare asks for, 95 of 100 comparisons find a slowdown of 2 % in one network") {
  const bool stalls = GENERATE(false, true);
  CAPTURE(stalls);
  Machine machine(212, stalls);
  const auto run = [&](std::size_t count) { return networks(machine, count, 1.02); };
  CHECK(of_100([&] { return row_of(compare(run(asked(run))), "net/resnet18").verdict == Verdict::slower; }) >= 95);
}

TEST_CASE(
    "90 of 100 comparisons of the program with itself call all rows equal, with as many processes as compare asks "
    "for") {
  const bool stalls = GENERATE(false, true);
  const double smallest = stalls ? 0.05 : GENERATE(0.02, 0.05);
  CAPTURE(stalls, smallest);
  const CompareRules rules{.smallest = smallest};
  Machine machine(217, stalls);
  const auto run = [&](std::size_t count) { return networks(machine, count); };
  int wrong = 0;
  std::vector<std::size_t> counts;
  CHECK(of_100([&] {
          counts.push_back(asked(run, rules));
          const Comparison found = compare(run(counts.back()), rules);
          wrong += changed(found) > 0 ? 1 : 0;
          return found.count(Verdict::equal) == 4;
        }) >= 90);
  std::sort(counts.begin(), counts.end());
  CAPTURE(counts.front(), counts[50], counts.back());
  CHECK(wrong <= 5);
  CHECK(counts[50] <= 300);
}

TEST_CASE("at most 5 of 100 comparisons call a row equal that is slower by more than the smallest change to find") {
  const std::size_t count = GENERATE(8, 30);
  CAPTURE(count);
  Machine machine(218);
  CHECK(of_100([&] {
          return row_of(compare(networks(machine, count, 1.025)), "net/resnet18").verdict == Verdict::equal;
        }) <= 5);
}

TEST_CASE("95 of 100 ledgers show that a layer is 5 % slower, and a layer three times as slow slows the whole pass") {
  Machine machine(213);
  const CompareRules rules{.smallest = 0.05};
  const auto ledgers = [&](std::size_t count, double slow) {
    return in_turns(
        count, [&] { return machine.ledger(); }, [&] { return machine.ledger(slow); });
  };
  const auto run = [&](std::size_t count) { return ledgers(count, 1.05); };
  std::size_t all = 0;
  const int found = of_100([&] {
    const Comparison each = compare(run(asked(run, rules)), rules);
    all += changed(each);
    return row_of(each, "ledger/conv3/forward").verdict == Verdict::slower;
  });
  CHECK(found >= 95);
  CHECK(static_cast<int>(all) - found <= 5);
  CHECK(row_of(compare(ledgers(20, 3)), "ledger//forward").verdict == Verdict::slower);
}

TEST_CASE("a gate finds a row that is slower than the gate's limit, even if the smallest change to find is larger") {
  Machine machine(219);
  const Sides sides = networks(machine, 60, 1.06);
  CHECK(row_of(bench::compare(sides.first, sides.second, {.smallest = 0.2}), "net/resnet18").verdict == Verdict::equal);
  const Comparison found = compare(sides, {.smallest = 0.2, .fail_if_slower = 0.03});
  CHECK(row_of(found, "net/resnet18").verdict == Verdict::slower);
  CHECK(found.failed().size() == 1);
  CHECK(compare(sides, {.smallest = 0.2, .fail_if_slower = 0.1}).failed().empty());
}

TEST_CASE("processes with the same times are equal, and processor time can take the place of duration") {
  const auto file = [](double seconds, double cpu_seconds) {
    RunFile one{"a.json", {}, {}};
    RunRow& row = one.rows["net/a"];
    row.key = {{"what", "net"}, {"network", "a"}};
    row.seconds = {seconds, seconds};
    if (cpu_seconds > 0) row.cpu_seconds = {cpu_seconds, cpu_seconds};
    return one;
  };
  Sides sides;
  for (int i = 0; i < 10; ++i) {
    sides.first.push_back(file(1 + 1e-3 * i, 2 + 1e-3 * i));
    sides.second.push_back(file(1 + 1e-3 * i, 3 + 1e-3 * i));
  }
  CHECK(compare(sides).rows[0].verdict == Verdict::equal);
  CHECK(compare(sides, {.cpu_time = true}).rows[0].verdict == Verdict::slower);
  sides.second[3] = file(1, 0);
  CHECK_THROWS_AS(compare(sides, {.cpu_time = true}), UsageError);
}

TEST_CASE("a process that other programs disturbed counts only with any_load") {
  Machine machine(216);
  Sides sides = networks(machine, 20, 2);
  CHECK(row_of(compare(sides), "net/resnet18").verdict == Verdict::slower);
  for (int i = 0; i < 15; ++i) sides.second[static_cast<std::size_t>(i)].rows["net/resnet18"].others_share = 0.3;
  const ComparedRow row = row_of(compare(sides), "net/resnet18");
  CHECK(row.verdict == Verdict::inconclusive);
  CHECK(row.processes == 5);
  CHECK(row.disturbed == 15);
  CHECK_THAT(row.reason, ContainsSubstring("30 %"));
  CHECK(row_of(compare(sides, {.any_load = true}), "net/resnet18").verdict == Verdict::slower);
  // Other programs had half of the processors' time. This may explain a factor of 2. The other factor of 2 is too small
  // for a verdict on one process.
  sides = networks(machine, 1, 4);
  sides.second[0].rows["net/resnet18"].others_share = 0.5;
  const ComparedRow loaded = row_of(compare(sides), "net/resnet18");
  CHECK(loaded.is_undecided());
  CHECK(loaded.ratio.middle == Approx(4).epsilon(0.5));
}

TEST_CASE("a gate fails for rows that fail or are missing in the second side, not for rows missing in the first") {
  Machine machine(215);
  Sides sides = networks(machine, 2);
  RunRow& failing = sides.second[1].rows["net/alexnet"];  // one of two processes fails
  failing.seconds.clear();
  failing.failure = "OutOfMemory: too much";
  for (RunFile& file : sides.second) file.rows.erase("net/vgg16");
  sides.second[0].rows["net/new"] = sides.second[0].rows["net/resnet50"];
  const Comparison found = compare(sides);
  CHECK(row_of(found, "net/alexnet").verdict == Verdict::fails);
  CHECK_THAT(row_of(found, "net/alexnet").reason, ContainsSubstring("OutOfMemory"));
  CHECK(row_of(found, "net/vgg16").verdict == Verdict::missing);
  CHECK(row_of(found, "net/new").verdict == Verdict::missing);
  CHECK(found.failed().size() == 2);
}
