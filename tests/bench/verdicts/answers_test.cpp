// The sentences of a sweep about its result, for known times.

#include "bench/sweep/answers.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

/// The table has full sweeps and small ones: gains that stop, go on, or are unsure; batches that are no powers of two;
/// points that failed; passes that drift or are too few; load by other programs; odd batches that pay on one side;
/// several even batches; equally good numbers of threads.
TEST_CASE("a sweep's answers match the table") {
  std::ifstream file(lamina::test::data("sweep_answers.json"));
  const nlohmann::json table = nlohmann::json::parse(file);
  REQUIRE(!table.at("cases").empty());
  for (const nlohmann::json& each : table.at("cases")) {
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

TEST_CASE("the answer about the largest batch says whether it was predicted or ran, and whether the next one ran") {
  LargestRun run{
      .predicted = 40, .at_least = false, .ran = true, .next_refused = true, .not_run = {}, .limit = "1 GiB"};
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("it ran, and 41 was out of memory"));
  CHECK(largest_batch(run).value == 40);
  run.not_run = "a pass takes too long";
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("not run: a pass takes too long"));
  run.predicted = 0;
  CHECK_FALSE(largest_batch(run).value);
}
