// What a sweep answers in words, and the time that it has left, for known times.

#include "bench/sweep/answers.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/sweep/time_left.h"
#include "tests/support/catch.h"

using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Nine samples within 1 % of so many seconds.
SweepPoint point(int batch, double seconds, int threads = 0) {
  SweepPoint made{batch, threads};
  for (int i = 0; i < 9; ++i) made.seconds.push_back(seconds * (1 + 0.001 * ((i * 4) % 9)));
  return made;
}

}  // namespace

TEST_CASE("the batch from which a doubling gains less than 5 % per image is the first after which none gains more") {
  // Per image 10, 8, 7, 6.9, 6.8 ms.
  const Answer found =
      *batch_flat({point(1, 0.01), point(2, 0.016), point(4, 0.028), point(8, 0.0552), point(16, 0.1088)});
  CHECK(found.what == "batch_flat");
  CHECK(found.value == 4);
  CHECK_THAT(found.text, ContainsSubstring("from 4 to 8"));
  const Answer never = *batch_flat({point(1, 0.01), point(2, 0.016), point(4, 0.026)});
  CHECK_FALSE(never.value);
  CHECK_THAT(never.text, ContainsSubstring("than 4 may gain more: from 2 to 4"));
  // Batches between the doublings do not count: per image 10, 8, 9, 6 and 10, 9, 11, 9, 11 ms.
  CHECK_FALSE(batch_flat({point(1, 0.01), point(2, 0.016), point(3, 0.027), point(4, 0.024)})->value);
  CHECK(batch_flat({point(1, 0.01), point(2, 0.018), point(3, 0.033), point(4, 0.036), point(5, 0.055)})->value == 2);
  SweepPoint failed{8};
  failed.failure = "OutOfMemory: ";
  CHECK(batch_flat({point(1, 0.01), point(2, 0.02), failed})->value == 1);
  CHECK_FALSE(batch_flat({point(1, 0.01), failed}));
}

TEST_CASE("the best number of threads is the fastest, with those that are as good within noise") {
  const Answer found = *best_threads({point(16, 1.0, 1), point(16, 0.55, 2), point(16, 0.551, 4)});
  CHECK(found.value == 2);
  CHECK_THAT(found.text, ContainsSubstring("as good within noise: 4"));
  CHECK_THAT(found.text, ContainsSubstring("with 1 a pass takes 1.81"));
  const Answer one = *best_threads({point(16, 1.0, 1), point(16, 1.5, 2)});
  CHECK(one.value == 1);
  CHECK_THAT(one.text, ContainsSubstring("1 thread is the fastest: with 2 a pass takes 1.50"));
  CHECK_FALSE(best_threads({point(16, 1, 1)}));
}

TEST_CASE("passes that resemble their predecessors decide less than as many independent ones") {
  // The same times: once in any order, once as a machine that gets slower from pass to pass.
  const std::vector<double> noise = {1.00, 1.02, 1.04, 1.06, 1.08, 1.10, 1.12, 1.14, 1.16, 1.18};
  const auto of = [&](int batch, double seconds, bool drifts) {
    SweepPoint made{batch};
    for (std::size_t i = 0; i < noise.size(); ++i)
      made.seconds.push_back(batch * seconds * noise[drifts ? i : i * 3 % noise.size()]);
    return made;
  };
  for (const bool drifts : {false, true})
    CHECK_THAT(odd_batches({of(15, 0.93, drifts), of(16, 1, drifts), of(17, 1, drifts)})->text,
               ContainsSubstring(drifts ? "make no difference" : "Odd batches pay"));
}

TEST_CASE("a batch from which on nothing is gained is not sure where the doubling before it may have gained nothing") {
  SweepPoint wide{1};  // its median is 1.08
  for (int i = 0; i < 9; ++i) wide.seconds.push_back(1 + 0.02 * ((i * 4) % 9));
  const Answer open = *batch_flat({wide, point(2, 2 * 1.015), point(4, 4 * 1.015)});
  CHECK(open.value == 2);
  CHECK_THAT(open.text, ContainsSubstring("by the medians"));
  CHECK_THAT(batch_flat({point(1, 1), point(2, 2 * 0.9), point(4, 4 * 0.9)})->text,
             !ContainsSubstring("by the medians"));
}

TEST_CASE("odd batches pay where an image is cheaper beside an even batch, and do not where it is dearer") {
  CHECK_THAT(odd_batches({point(15, 15), point(16, 20), point(17, 17)})->text, ContainsSubstring("Odd batches pay"));
  CHECK_THAT(odd_batches({point(15, 14), point(16, 16), point(17, 17)})->text, ContainsSubstring("Odd batches pay"));
  CHECK_THAT(odd_batches({point(15, 17), point(16, 16), point(17, 19)})->text, ContainsSubstring("do not pay"));
  CHECK_THAT(odd_batches({point(15, 15), point(16, 16), point(17, 17)})->text, ContainsSubstring("no difference"));
  CHECK_FALSE(odd_batches({point(15, 15), point(16, 16)}));
}

TEST_CASE("of several even batches with odd ones beside them the largest is judged") {
  const Answer found =
      *odd_batches({point(7, 7), point(15, 15), point(16, 20), point(17, 17), point(8, 8), point(9, 9)});
  CHECK_THAT(found.text, ContainsSubstring("beside 16"));
}

TEST_CASE("answers are those of the table") {
  std::ifstream file(LAMINA_TEST_DATA "/sweep_answers.json");
  for (const nlohmann::json& each : nlohmann::json::parse(file).at("cases")) {
    std::vector<SweepPoint> points;
    for (const nlohmann::json& its : each.at("points"))
      points.push_back({its.at("batch"), its.at("threads"), its.at("seconds"), {}, its.at("others_share")});
    const std::string what = each.at("what");
    const std::optional<Answer> found = what == "batch_flat"    ? batch_flat(points)
                                        : what == "odd_batches" ? odd_batches(points)
                                                                : best_threads(points);
    CAPTURE(each.dump());
    REQUIRE(found.has_value() == each.contains("text"));
    if (!found) continue;
    CHECK(found->what == what);
    CHECK(found->value.has_value() == each.contains("value"));
    CHECK(found->value.value_or(0) == each.value("value", 0));
    CHECK(found->text == each.at("text").get<std::string>());
  }
}

TEST_CASE("answers from points during which other programs ran say so") {
  std::vector<SweepPoint> points = {point(1, 1), point(2, 2)};
  CHECK(load_text(points).empty());
  points[1].others_share = 0.1;
  CHECK(load_text(points).empty());
  points[1].others_share = 0.42;
  CHECK_THAT(load_text(points), ContainsSubstring("42 %"));
}

TEST_CASE("answers from points of fewer passes than an interval of 95 % needs say so") {
  CHECK(passes_text({point(1, 1)}).empty());
  CHECK(passes_text({SweepPoint{1, 0, {1, 1, 1, 1}}, SweepPoint{2}}).empty());
  CHECK_THAT(passes_text({point(1, 1), SweepPoint{2, 0, {1, 2, 3}}}), ContainsSubstring("of 3 passes"));
  CHECK_THAT(passes_text({SweepPoint{2, 0, {1}}}), ContainsSubstring("of 1 pass an"));
}

TEST_CASE("the largest batch says whether it was predicted, ran, and was the last one that could") {
  LargestRun run{
      .predicted = 40, .at_least = false, .ran = true, .next_refused = true, .not_run = {}, .limit = "1 GiB"};
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("it ran, and 41 was out of memory"));
  CHECK(largest_batch(run).value == 40);
  run.not_run = "a pass takes too long";
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("not run: a pass takes too long"));
  run.predicted = 0;
  CHECK_FALSE(largest_batch(run).value);
}

TEST_CASE("the time left of a sweep is that of the points that are left, at the rate of those that were measured") {
  TimeLeft left;
  left.plan("batch 1", 10, 2);
  left.plan("batch 2", 20, 2);
  left.plan("batch 4", 40, 2);
  CHECK(left.seconds(20) == 0);  // nothing was measured
  left.done("batch 1", 5);
  CHECK(left.seconds(20) == Approx(30));
  CHECK(left.seconds(8) == Approx(10));  // a pass of batch 4 takes 10 s: it will be left out
  left.done("batch 1", 1000);            // known already
  left.drop("batch 2");
  CHECK(left.points_left() == 1);
  left.done("batch 4", 40);  // 45 s for 50 operations, and nothing is left
  CHECK(left.seconds(20) == 0);
}
