// Whole trainings: their rows, costs and logs, their part in races, their output, and errors.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/race/serve/server.h"
#include "bench/train/report.h"
#include "lamina/error.h"
#include "lamina/safetensors.h"
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

}  // namespace

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

TEST_CASE("a training in a race runs epoch by epoch on request, and writes its batches to files for the other sides") {
  const test::Folder folder;
  const auto backend = make_backend("eigen");
  const ServedTrainingOptions options{"mnist_mlp", 0.005, 2, folder.path()};
  write_batches(options, *backend);
  const TensorFile initial = read_safetensors(folder / "initial.safetensors");
  CHECK(initial.at("dense_1.weight").values.size() == 784 * 512);
  const TensorFile first = read_safetensors(folder / "epoch-0.safetensors"),
                   second = read_safetensors(folder / "epoch-1.safetensors");
  CHECK(first.at("x").extents ==
        std::vector<std::int64_t>{256, 1, 28, 28});  // 300 samples give two complete batches of 128
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

TEST_CASE("a stopped training says how to go on, and a complete training says that it is complete") {
  const test::Folder folder;
  TrainOptions options;
  options.names = {"mnist_mlp"};
  options.epochs = 2;
  options.share = 0.002;
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

TEST_CASE("a line of progress has the epoch, its finished share, samples per second, and the times left") {
  CHECK(progress_line({.epoch = 2, .batch = 30, .batches = 60}, 4, 75, 150, 92580) ==
        "epoch 3/4  [##########          ]  50 %  1234 samples/s  15 s left; in all about 2 min 0 s, of which 45 s are "
        "left");
}

TEST_CASE("a training reports its progress from its second batch on, but not too often") {
  std::string said;
  TrainingScreen often(2, 0, [&](const std::string& text) { said += text + "|"; });
  TrainingScreen seldom(2, 1000, [](const auto&) { FAIL(); });
  for (std::int64_t batch = 1; batch < 3; ++batch)
    for (TrainingScreen* screen : {&often, &seldom}) screen->batch_done({.batch = batch, .batches = 4, .samples = 8});
  CHECK_THAT(said, Catch::Matchers::StartsWith("epoch 1/2  [##########          ]  50 %  ") &&
                       Catch::Matchers::EndsWith(" are left|"));
}

TEST_CASE("a price per hour gives a cost in dollars, with two significant digits or more") {
  CHECK(cost_text(1800, 0.5) == ", 0.2500 USD at 0.5 USD/h");
  CHECK(cost_text(0.95, 0.12) == ", 0.000032 USD at 0.12 USD/h");
  CHECK(cost_text(1800, 0).empty());
}

TEST_CASE("a target is reached at the end of the first epoch with that accuracy") {
  const std::vector<EpochResult> epochs = {epoch(0, 3, 1, .5, .7), epoch(1, 2, .8, .95, .9), epoch(2, 2, .7, .96, .85)};
  CHECK(seconds_to(epochs, .7) == 3);
  CHECK(seconds_to(epochs, .9) == 5);
  CHECK(seconds_to(epochs, .91) < 0);
  CHECK(seconds_to({epoch(0, 3, 1, .5, none), epoch(1, 2, 1, .6, none)}, .6) == 5);
}
