// What a training writes while it runs, and what is refused before it begins.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/train/train.h"
#include "lamina/error.h"
#include "tests/bench/ended.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

TEST_CASE("a run's file has every epoch as soon as it is done, and keeps an earlier run's until there is one") {
  const test::Folder folder;
  TrainOptions options{.names = {"mnist_mlp"}, .epochs = 3, .share = 0.002, .out = folder / "run.csv"};
  const auto lines = [&] {
    std::ifstream file(options.out);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return std::count(text.begin(), text.end(), '\n');
  };
  std::vector<std::ptrdiff_t> before;  // lines of the file when an epoch is printed
  const auto print = [&](const std::string& text) {
    if (text.starts_with("epoch ")) before.push_back(lines());
  };
  CHECK(train_all(options, make_backend, print) == 0);
  CHECK(before == std::vector<std::ptrdiff_t>{0, 2, 3});
  CHECK(lines() == 4);

  const auto ended = test::run_program("timeout --preserve-status --signal=TERM 0.5 " LAMINA_BENCH,
                                       "train mnist_cnn --share=0.3 --epochs=1 --out=" + folder.file("run.csv"));
  INFO(ended.said);
  CHECK(ended.status == 143);
  CHECK(lines() == 4);
}

TEST_CASE("files that cannot be written are errors before anything is trained") {
  const test::Folder folder;
  test::write(folder / "plain", "");
  for (const auto field : {&TrainOptions::out, &TrainOptions::json, &TrainOptions::checkpoint}) {
    TrainOptions options{.names = {"mnist_mlp"}, .share = 0.002};
    options.*field = folder / "plain/run";
    CHECK_THROWS_AS(train_all(options, make_backend, [](const std::string&) { FAIL("it began"); }), FileError);
  }
}

TEST_CASE("an unknown training is refused with near names of workloads and of networks") {
  const auto said = [](const char* name) -> std::string {
    try {
      train_all({.names = {name}}, make_backend, [](const std::string&) { FAIL("it began"); });
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said("imdb_fasttex").find("imdb_fasttext") != std::string::npos);
  CHECK(said("resnet5").find("resnet50") != std::string::npos);
  CHECK(said("resnet50").find("give --data") != std::string::npos);
}
