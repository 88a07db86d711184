// Costs of trainings: the posts' table from their epoch times and prices; prices, targets and logs of our own runs.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/race/serve/training.h"
#include "bench/rows/epochs.h"
#include "bench/train/cost.h"
#include "bench/train/lines.h"
#include "bench/train/published_trainings.h"
#include "bench/train/screen.h"
#include "bench/train/seeds.h"
#include "bench/train/train.h"
#include "lamina/error.h"
#include "lamina/weights.h"
#include "lamina/workloads.h"
#include "tests/bench/ended.h"
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

TEST_CASE("epochs are rows of the result file, one training after another") {
  const test::Folder folder;
  TrainOptions options;
  options.names = {"mnist_mlp", "lstm_text"};
  options.share = 0.003;
  options.epochs = 2;
  options.seeds = 2;
  options.seed = 5;
  options.json = folder / "run.json";
  std::string printed;
  CHECK(train_all(options, make_backend, [&](const std::string& text) { printed += text; }) == 0);
  const auto file = nlohmann::json::parse(std::ifstream(options.json));
  REQUIRE(file["trainings"].size() == 4);
  REQUIRE(file["benchmarks"].size() == 8);
  CHECK(file["context"]["interrupted"] == false);
  CHECK(file["context"].contains("processor"));
  CHECK(file["trainings"][0]["name"] == "train/mnist_mlp/epoch/eigen/f32/nchw/batch:128/synthetic:0.003/seed:5");
  CHECK(file["trainings"][3]["key"]["differs"]["seed"] == "6");
  for (std::size_t i = 0; i < 8; ++i) {
    const auto& row = file["benchmarks"][i];
    const auto& training = file["trainings"][i / 2];
    CHECK(row["name"] == training["name"]);
    CHECK(row["key"] == training["key"]);
    CHECK(row["epoch"] == i % 2);
    CHECK(row["repetition_index"] == i % 2);
    CHECK(row["samples"] == training["samples"]);
    CHECK(row["real_time"].get<double>() > 0);
    CHECK(row["loss"].get<double>() > 0);
    CHECK(row.contains("validation_loss") == (i < 4));
    CHECK(row["label"].get<std::string>().starts_with("synthetic"));
  }
  CHECK(file["benchmarks"][0]["loss"] != file["benchmarks"][2]["loss"]);
  const std::string table = printed.substr(printed.rfind("training "));
  INFO(table);
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);
}

TEST_CASE("rows of epochs have each its own loss, and a file of run those of a file of train") {
  const test::Folder folder;
  const std::string flags = "--backend=eigen --share=0.002 ";
  const auto rows =
      test::run_bench(flags + "--benchmark_filter=^train/mnist_mlp --passes=2 --benchmark_out=" + folder.file("a"));
  CAPTURE(rows.said);
  REQUIRE(rows.status == 0);
  const auto train = test::run_bench("train mnist_mlp --share=0.002 --epochs=3 --json=" + folder.file("b"));
  REQUIRE(train.status == 0);
  const auto timed = test::read(folder.file("a"))["benchmarks"], all = test::read(folder.file("b"))["benchmarks"];
  for (std::size_t i = 0; i < 2; ++i)  // the first epoch warms up
    for (const char* field :
         {"name", "key", "epoch", "samples", "loss", "accuracy", "validation_loss", "label", "time_unit"}) {
      CAPTURE(i, field);
      CHECK(timed[i][field] == all[i + 1][field]);
    }
}

TEST_CASE("a training in a race is served by epochs, and its batches are files for the other sides") {
  const test::Folder folder;
  const auto backend = make_backend("eigen");
  const ServedTrainingOptions options{"mnist_mlp", 0.005, 2, folder.path()};
  write_batches(options, *backend);
  const TensorFile initial = read_safetensors(folder / "initial.safetensors");
  CHECK(initial.at("dense_1.weight").values.size() == 784 * 512);
  const TensorFile first = read_safetensors(folder / "epoch-0.safetensors"),
                   second = read_safetensors(folder / "epoch-1.safetensors");
  CHECK(first.at("x").extents == std::vector<std::int64_t>{256, 1, 28, 28});  // of 300 samples, whole batches of 128
  CHECK(first.at("labels").extents == std::vector<std::int64_t>{256});
  CHECK(first.at("labels").values != second.at("labels").values);
  CHECK(first.at("x").values != second.at("x").values);

  const auto served = serve_training(options, *backend);
  CHECK(served->facts()["batch"] == 128);
  CHECK(served->facts()["samples"] == 256);
  const auto one = served->pass(), two = served->pass();
  CHECK(one["epoch"].get<double>() > 0);
  CHECK(one["epoch_cpu"].get<double>() > 0);
  CHECK(two["loss"] != one["loss"]);
  CHECK_THROWS_AS(serve_training({"mnist_mlq", 1, 1, {}}, *backend), UsageError);
}

TEST_CASE("options of trainings that do not go together are errors before anything runs") {
  const test::Folder folder;
  const auto refused = [](TrainOptions options) {
    CHECK_THROWS_AS(train_all(options, make_backend, [](const std::string&) { FAIL("it began"); }), UsageError);
  };
  refused({.names = {"mnist_mlp", "mnist_mlp"}});
  refused({.names = {"mnist_mlp", "mnist_cnn"}, .out = folder / "a.csv"});
  refused({.names = {"mnist_mlp"}, .seeds = 2, .checkpoint = folder / "a.safetensors"});
  refused({.names = {"mnist_mlp"}, .batch = 8});
  refused({.names = {"resnet18"}});
  refused({.names = {"mnist_mlp"}, .target = 98});
  refused({.names = {"mnist_mlp"}, .accept = true});
  refused({.names = {"mnist_mlp"}, .epochs = 3, .data = folder.path(), .accept = true});
  refused({.names = {"resnet18"}, .data = folder.path(), .accept = true});
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
  test::write(file, "price\n1\n");
  CHECK_THROWS_AS(price_of(file, "K80"), FileError);
  test::write(file, "source,date,configuration,usd_per_hour,note\na,2017-11,K80,cheap,\n");
  CHECK_THROWS_AS(price_of(file, "K80"), FileError);
  CHECK_THROWS_AS(price_of(folder / "none.csv", "K80"), FileError);
  CHECK(usd(1800, 0.5) == 0.25);
  CHECK(cost_text(1800, {.usd_per_hour = 0.5}) == ", 0.2500 USD at 0.5 USD/h");
  CHECK(cost_text(0.95, {"2017-11", "16 vCPU", 0.12}) == ", 0.000032 USD at 0.12 USD/h of 2017-11");
  CHECK(cost_text(1800, {}).empty());
}

TEST_CASE("a training that was stopped says how it goes on, and a complete one that it is") {
  const test::Folder folder;
  TrainOptions options{.names = {"mnist_mlp"}, .epochs = 2, .share = 0.002};
  CHECK(stopped_line(options, 1, 2, "").find("1 of 2 epochs; without --checkpoint") != std::string::npos);
  options.checkpoint = folder / "run.safetensors";
  CHECK(stopped_line(options, 1, 2, "").find("goes on from " + options.checkpoint.string()) != std::string::npos);
  CHECK(stopped_line(options, 0, 2, "").find("after the first epoch") != std::string::npos);
  for (const char* said : {"seed 0", "has 2 epochs already"}) {
    std::string printed;
    CHECK(train_all(options, make_backend, [&](const std::string& text) { printed += text; }) == 0);
    INFO(printed);
    CHECK(printed.find(said) != std::string::npos);
  }
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

TEST_CASE("a line of progress has the epoch, its share, samples per second and the time left") {
  const std::string line = progress_line({.epoch = 2, .batch = 30, .batches = 60}, 20, 1234.4, 75);
  for (const char* part : {"3/20", "50 %", "1234", "1 min", "##########"}) {
    INFO(line);
    CHECK(line.find(part) != std::string::npos);
  }
}
