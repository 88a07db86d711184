// Verdicts on variants that ran in turns.

#include <algorithm>
#include <cmath>

#include "lamina/error.h"
#include "machine.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using namespace lamina::bench::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::ordered_json;

namespace {

Comparison versions(const std::vector<Variant>& variants, const CompareRules& rules = {}) {
  return compare_paired(variants, {}, rules);
}

/// A row whose rounds take about `seconds` each.
RunRow timed(const ordered_json& key, double seconds, int rounds = 9) {
  RunRow row;
  row.key = key;
  for (int i = 0; i < rounds; ++i) {
    row.rounds.push_back(i);
    row.seconds.push_back(seconds * (1 + 1e-3 * i));
  }
  return row;
}

RunRow failed(const ordered_json& key, const char* why) {
  RunRow row;
  row.key = key;
  row.failure = why;
  return row;
}

ordered_json net(const char* network, const char* part = "total") {
  return {{"what", "net"}, {"network", network}, {"part", part}, {"backend", "eigen"},
          {"type", "f32"}, {"layout", "nchw"},   {"batch", 16}};
}

ordered_json layer(const char* name, const char* algorithm) {
  ordered_json key = net("a", "forward");
  key.update({{"what", "layer"}, {"layer", name}, {"algorithm", algorithm}});
  return key;
}

}  // namespace

TEST_CASE("at most 5 of 100 comparisons of a program with itself in turns are slower or faster") {
  const bool stalls = GENERATE(false, true);
  const std::size_t rounds = GENERATE(1, 6, 9, 30);
  CAPTURE(stalls, rounds);
  Machine machine(311, stalls);
  CHECK(of_100([&] { return changed(versions(machine.turns(rounds))) > 0; }) <= 5);
}

TEST_CASE("with the rounds that compare asks for, 95 of 100 comparisons find a slowdown of 2 %, or equal rows") {
  const bool stalls = GENERATE(false, true);
  const double slow = GENERATE(1.0, 1.02);
  CAPTURE(stalls, slow);
  Machine machine(312, stalls);
  std::vector<std::size_t> counts;
  CHECK(of_100([&] {
          std::size_t rounds = fewest_samples;
          for (int again = 0; again < 2; ++again) {
            const Comparison few = versions(machine.turns(std::max<std::size_t>(rounds, 12), slow));
            rounds = std::max(rounds, few.processes_wanted(few.rows[0], 0.02));
          }
          counts.push_back(rounds);
          const Verdict verdict = versions(machine.turns(rounds, slow)).rows[0].verdict;
          return verdict == (slow > 1 ? Verdict::slower : Verdict::equal);
        }) >= 95);
  std::sort(counts.begin(), counts.end());
  CAPTURE(counts.front(), counts[50], counts.back());
  // Few rounds give a rough estimate of the noise, but compare asks for at most twice the rounds that are needed.
  const Comparison many = versions(machine.turns(5000, slow));
  CHECK(counts[50] <= 2 * many.processes_wanted(many.rows[0], 0.02));
}

TEST_CASE("with too few rounds only differences over threefold are decided, and rounds of one variant do not count") {
  Variant first{"old", {{"row", timed(net("a"), 1, 9)}}}, second{"new", {{"row", timed(net("a"), 2, 9)}}};
  CHECK(row_of(versions({first, second}), "row").verdict == Verdict::slower);
  second.rows["row"].rounds = {20, 21, 22, 23, 4, 5, 6, 7, 8};
  const Comparison few = versions({first, second});
  CHECK(few.rows[0].verdict == Verdict::inconclusive);
  CHECK(few.rows[0].processes == 5);
  CHECK_THAT(few.rows[0].reason, ContainsSubstring("1 more needed"));
  CHECK(few.processes_wanted(0.02) >= fewest_samples);
  for (double& seconds : second.rows["row"].seconds) seconds *= 2;
  CHECK(versions({first, second}, {.fail_if_slower = 0.02}).failed().size() == 1);
}

TEST_CASE("if other programs disturbed every round of a side, nothing but processor time is decided") {
  Variant first{"old", {{"row", timed(net("a"), 1)}}}, second{"new", {{"row", timed(net("a"), 8)}}};
  for (const bool every : {false, true}) {
    second.rows["row"].disturbed = every ? 9 : 8;
    const Comparison all = versions({first, second}, {.fail_if_slower = 0.02});
    CHECK(all.rows[0].verdict == (every ? Verdict::inconclusive : Verdict::slower));
    CHECK(all.rows[0].is_undecided() == every);
    CHECK((all.failed().empty() == every && all.processes_wanted(0.02) == 0));
    CHECK(all.rows[0].ratio.middle == Approx(8));
  }
  for (Variant* side : {&first, &second}) side->rows["row"].cpu_seconds = side->rows["row"].seconds;
  CHECK(versions({first, second}, {.cpu_time = true}).rows[0].verdict == Verdict::slower);
}

TEST_CASE("a race compares its subject with each competitor and with the fastest, and gives means over networks") {
  Variant ours{"eigen", {}}, torch{"torch", {}}, keras{"keras", {}};
  for (const auto& [name, theirs] : {std::pair("a", 2.0), std::pair("b", 8.0)}) {
    ours.rows[name] = timed(net(name), 1);
    torch.rows[name] = timed(net(name), theirs);
    keras.rows[name] = timed(net(name), 4);
  }
  keras.rows["c"] = timed(net("c"), 1);  // a network that our side does not run
  torch.rows["d"] = failed(net("d"), "Unsupported: no");
  ours.rows["d"] = timed(net("d"), 1);
  const Comparison all = compare_paired({ours, torch, keras}, {"eigen"}, {});
  CHECK(all.rows.size() == 2 * 3 + 1);
  CHECK(row_of(all, "a", "torch").ratio.middle == Approx(0.5));
  CHECK(row_of(all, "a", "torch").verdict == Verdict::faster);
  CHECK(row_of(all, "a", "torch").second == "eigen");
  CHECK(row_of(all, "a", "fastest").fastest == "torch");
  CHECK(row_of(all, "b", "fastest").fastest == "keras");
  CHECK(row_of(all, "b", "fastest").ratio.middle == Approx(0.25));
  CHECK(row_of(all, "d", "torch").verdict == Verdict::inconclusive);
  CHECK_THAT(row_of(all, "d", "torch").reason, ContainsSubstring("Unsupported: no"));
  REQUIRE(all.means.size() == 3);
  CHECK(all.means[0].first == "torch");
  CHECK(all.means[0].networks == 2);
  CHECK(all.means[0].ratio == Approx(0.25));
  CHECK(all.means[2].first == "fastest");
  CHECK(all.means[2].ratio == Approx(0.5 * std::sqrt(0.5)));
  REQUIRE(all.means[2].interval);
  CHECK(all.means[2].interval->low <= all.means[2].ratio);
  for (auto& [name, row] : ours.rows) row.rounds.resize(5), row.seconds.resize(row.rounds.size());
  CHECK_FALSE(compare_paired({ours, torch}, {"eigen"}, {}).means.at(0).interval);
  CHECK_THROWS_WITH(compare_paired({ours, torch}, {"cuda"}, {}), ContainsSubstring("valid names: eigen, torch"));
  CHECK_THROWS_AS(versions({ours, {"empty", {}}}), UsageError);
}

TEST_CASE("a gate on variants fails if rows fail, are missing, or are slower by more than the limit with certainty") {
  const auto judged = [](double factor, double spread, double limit) {
    Variant old{"old", {}}, now{"new", {}};
    for (const char* name : {"row", "bad", "gone"}) old.rows[name] = now.rows[name] = timed(net(name), 1);
    for (int i = 0; i < 9; ++i) now.rows["row"].seconds[i] *= factor + spread * (i - 4);
    now.rows["bad"] = failed(net("bad"), "OutOfMemory: too much");
    now.rows.erase("gone");
    const Comparison all = versions({old, now}, {.fail_if_slower = limit});
    const ComparedRow& row = row_of(all, "row");
    CHECK(all.failed().size() == (row.beyond_gate ? 3 : 2));
    return std::pair(row.verdict, row.beyond_gate);
  };
  CHECK(judged(1.06, 0, 0.03) == std::pair(Verdict::slower, true));
  CHECK(judged(1.06, 0, 0.1) == std::pair(Verdict::slower, false));
  // The limit is less than the smallest change to find.
  CHECK(judged(1.008, 0, 0.005) == std::pair(Verdict::slower, true));
  CHECK(judged(1.008, 0, 0.03) == std::pair(Verdict::equal, false));
  // The interval begins between 1 and the limit.
  CHECK(judged(1.04, 0.005, 0.03) == std::pair(Verdict::slower, true));
  // The interval is above 1, but the gate's interval is not above the limit.
  CHECK(judged(1.04, 0.01, 0.03) == std::pair(Verdict::slower, false));
}

TEST_CASE("a row says if the variants picked different algorithms, and if the plan takes over 1 % more memory") {
  Variant old{"old", {{"row", timed(layer("conv", "default"), 1)}}}, now = old;
  now.name = "new";
  const auto reason = [&](const char* algorithm, double mebibytes) {
    old.rows["row"].algorithm = "gemm", now.rows["row"].algorithm = algorithm;
    old.rows["row"].plan_MiB = 100, now.rows["row"].plan_MiB = mebibytes;
    return versions({old, now}).rows[0].reason;
  };
  CHECK(reason("gemm", 100.5).empty());
  CHECK(reason("direct", 120) == "picked direct instead of gemm; 100.0 -> 120.0 MiB");
}
