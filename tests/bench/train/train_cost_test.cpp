// Costs of trainings: the posts' table from their epoch times and prices; prices, targets and logs of our own runs.

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/train/cost.h"
#include "bench/train/published_trainings.h"
#include "bench/train/seeds.h"
#include "lamina/error.h"
#include "lamina/workloads.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

const double none = std::numeric_limits<double>::quiet_NaN();

EpochResult epoch(std::uint64_t number, double seconds, double loss, double accuracy, double val_accuracy) {
  return {.epoch = number,
          .training = {loss, accuracy},
          .validation = {std::isnan(val_accuracy) ? none : loss + 1, val_accuracy},
          .seconds = seconds};
}

/// By workload and platform.
using PublishedRuns = std::map<std::pair<std::string, std::string>, std::vector<EpochResult>>;

PublishedRuns published_runs() {
  std::istringstream lines(published_trainings);
  std::string line;
  std::getline(lines, line);
  PublishedRuns runs;
  while (std::getline(lines, line)) {
    std::array<std::string, 6> cell;
    std::istringstream cells(line);
    for (std::string& each : cell) std::getline(cells, each, ',');
    const auto number = [](const std::string& text) { return text.empty() ? none : std::stod(text); };
    auto& run = runs[{cell[0], cell[1]}];
    run.push_back(epoch(run.size(), number(cell[3]), number(cell[4]), none, number(cell[5])));
  }
  return runs;
}

}  // namespace

TEST_CASE("the posts' times and costs relative to the K80 follow from their epoch times and prices, to every digit") {
  struct Row {
    const char* platform;
    std::array<Relative, 6> published;
  };
  // In the order of workloads(): gpu_benchmark_v2.Rmd.
  const std::array<Row, 3> rows = {{
      {"p100", {{{.856, 2.594}, {.503, 1.525}, {.725, 2.198}, {.351, 1.064}, {.640, 1.939}, {.765, 2.318}}}},
      {"cpu32", {{{1.023, .494}, {2.656, 1.281}, {1.360, .656}, {3.252, 1.569}, {1.790, .864}, {2.943, 1.420}}}},
      {"cpu16", {{{1.228, .296}, {4.329, 1.044}, {2.007, .484}, {3.539, .854}, {1.840, .444}, {3.334, .804}}}},
  }};
  const auto digits = [](double value) { return std::llround(1000 * value); };
  for (const Row& row : rows)
    for (const Platform& platform : platforms()) {
      if (platform.name != row.platform) continue;
      for (std::size_t i = 0; i < workloads().size(); ++i) {
        const Relative ours = relative(workloads()[i].name, platform);
        INFO(workloads()[i].name << " on " << platform.title);
        CHECK(digits(ours.time) == digits(row.published[i].time));
        CHECK(digits(ours.cost) == digits(row.published[i].cost));
      }
    }
  for (const Workload& each : workloads())
    for (const Platform& platform : platforms())
      CHECK(published_epochs(each.name, platform.name).size() == static_cast<std::size_t>(each.epochs));
  CHECK_THROWS_AS(published_epochs("mnist_mlp", "abacus"), UsageError);
}

TEST_CASE("the posts' own runs are in the bands that accept ours, and worse ones do not") {
  auto runs = published_runs();
  CHECK(runs.size() == 24);
  for (auto& [name, run] : runs) {
    const Workload& known = workload(name.first);
    const Judgement verdict = judge(known, run);
    INFO(name.first << " on " << name.second);
    CHECK(verdict.accepted);
    CHECK(verdict.lines.size() == (known.last_accuracy.known() ? 4U : 2U));
    std::vector<EpochResult> worse = run;
    worse.back().training.loss = known.last_loss.high + 1.01 * (known.last_loss.high - known.last_loss.low);
    CHECK(!judge(known, worse).accepted);
    worse = run;
    worse.back().validation.accuracy =
        known.last_accuracy.low - 1.01 * (known.last_accuracy.high - known.last_accuracy.low);
    CHECK(judge(known, worse).accepted == !known.last_accuracy.known());
    worse.pop_back();
    CHECK_THROWS_AS(judge(known, worse), UsageError);
  }
}

TEST_CASE("of the posts' own runs as seeds, two of three decide") {
  std::map<std::string, std::vector<std::vector<EpochResult>>> by_workload;
  for (const auto& [name, run] : published_runs()) by_workload[name.first].push_back(run);
  CHECK(by_workload.size() == workloads().size());
  for (const auto& [name, runs] : by_workload) {
    INFO(name);
    const Workload& known = workload(name);
    REQUIRE(runs.size() == 4);
    std::vector<EpochResult> worse = runs[3];
    worse.back().training.loss = known.last_loss.high + 1.01 * (known.last_loss.high - known.last_loss.low);
    CHECK(judge_seeds(known, runs).accepted);
    CHECK(judge_seeds(known, {runs[0], runs[1], runs[2]}).accepted);
    CHECK(judge_seeds(known, {runs[0], worse, runs[2]}).accepted);
    CHECK_FALSE(judge_seeds(known, {worse, worse, runs[2]}).accepted);
    CHECK(judge_seeds(known, {runs[0], runs[1], runs[2], worse}).accepted);  // three of four are needed
    CHECK_FALSE(judge_seeds(known, {runs[0], runs[1], worse, worse}).accepted);
    CHECK_FALSE(judge_seeds(known, {worse}).accepted);
    CHECK_FALSE(judge_seeds(known, {runs[0], worse}).accepted);
    CHECK(judge_seeds(known, {runs[0], worse, runs[2]}).lines.back().find("2 of 3") != std::string::npos);
    worse.pop_back();
    CHECK_THROWS_AS(judge_seeds(known, {runs[0], worse, runs[2]}), UsageError);
  }
  CHECK_THROWS_AS(judge_seeds(workload("mnist_mlp"), {}), UsageError);
}

TEST_CASE("the published table says of how many epochs it is") {
  for (const Workload& known : workloads()) {
    const std::string title = published_table(known.name).columns.front().title;
    INFO(title);
    CHECK(title.find(std::to_string(known.epochs) + " epochs") != std::string::npos);
  }
}

TEST_CASE("the newest price of a configuration holds, and a file of another form is an error") {
  const test::Folder folder;
  const auto file = folder / "prices.csv";
  test::write(file,
              "source,date,configuration,usd_per_hour,note\na,2017-11,K80,0.4975,\na,2017-12,K80,0.22,\na,2017-11,P100,"
              "1.5,x\n");
  CHECK(price_of(file, "K80").usd_per_hour == 0.22);
  CHECK(price_of(file, "K80").date == "2017-12");
  CHECK(price_of(file, "P100").usd_per_hour == 1.5);
  CHECK_THROWS_AS(price_of(file, "H200"), UsageError);
  test::write(file, "source,date,configuration,usd_per_hour\r\na,2017-11,K80,0.5\r\n\r\n\n");
  CHECK(price_of(file, "K80").usd_per_hour == 0.5);
  test::write(file, "price\n1\n");
  CHECK_THROWS_AS(price_of(file, "K80"), FileError);
  for (const char* wrong : {"cheap", "-1", "nan", "inf", ""}) {
    test::write(file, std::string("source,date,configuration,usd_per_hour,note\na,2017-11,K80,") + wrong + ",\n");
    CHECK_THROWS_AS(price_of(file, "K80"), FileError);
  }
  CHECK_THROWS_AS(price_of(folder / "none.csv", "K80"), FileError);
  CHECK(usd(1800, 0.5) == 0.25);
  CHECK(cost_text(1800, {.usd_per_hour = 0.5}) == ", 0.2500 USD at 0.5 USD/h");
  CHECK(cost_text(0.95, {"2017-11", "16 vCPU", 0.12}) == ", 0.000032 USD at 0.12 USD/h of 2017-11");
  CHECK(cost_text(1800, {}).empty());
}

TEST_CASE("a target is reached at the end of the first epoch that has it") {
  const std::vector<EpochResult> epochs = {epoch(0, 3, 1, .5, .7), epoch(1, 2, .8, .95, .9), epoch(2, 2, .7, .96, .85)};
  CHECK(seconds_to(epochs, .7) == 3);
  CHECK(seconds_to(epochs, .9) == 5);
  CHECK(seconds_to(epochs, .91) < 0);
  CHECK(seconds_to({epoch(0, 3, 1, .5, none), epoch(1, 2, 1, .6, none)}, .6) == 5);
}

TEST_CASE("a run's file has the columns of the posts' logs, and nothing for what was not validated") {
  CHECK(run_csv({epoch(0, 3.5, .25, .5, .75), epoch(1, 2, .125, .625, none)}) ==
        "epoch,elapsed,loss,acc,val_loss,val_acc\n0,3.5,0.25,0.5,1.25,0.75\n1,2,0.125,0.625,,\n");
}
